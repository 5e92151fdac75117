"""The demo's policy as a text: the real servers' addresses put in, and two edits of it, a wrong one and a right one.

Edits go by text, so that the comments stay and the file reads like one that a person edits. ``place`` writes by
rename, as editors do. The meaning of the policy is read by ``gateway.policy``, as everywhere. Called by
``gateway.demo.run``.
"""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import orjson

import gateway
from gateway.demo.proof import Ban
from gateway.errors import PolicyRejectedError
from gateway.model.table import Table
from gateway.policy.compile import compile_table
from gateway.policy.load import load
from gateway.policy.secret import unresolved

NAME = "demo.yaml"
EDITED_ROUTE = "talk"
KEY_VARIABLE = "QUANTGATE_DEMO_{}"


class DemoPolicyError(Exception):
    """The demo's policy is missing or not what the demo needs. The message says what to do."""


def find_policy(name: str = NAME) -> Path:
    """A policy of the demo: beside the package in a checkout, else where an installed distribution keeps it."""
    package = Path(gateway.__file__).resolve().parent
    places = (package.parent / "routing_policies", Path(sys.prefix) / "share" / "quantgate" / "routing_policies")
    for place in places:
        if (place / name).is_file():
            return place / name
    raise DemoPolicyError(f"there is no routing_policies/{name} in {package.parent}: run the demo in a checkout")


def key_variable(tenant: str) -> str:
    """The environment variable that the policy reads a tenant's key from."""
    return KEY_VARIABLE.format(tenant.upper())


def with_addresses(text: str, urls: Mapping[str, str]) -> str:
    """The policy with each pool's endpoints replaced by one URL. Raises where a pool has none."""
    for pool, url in urls.items():
        text = _in_entry(text, rf"^  {re.escape(pool)}:$", r"endpoints: \[[^\]]*\]", f'endpoints: ["{url}"]', pool)
    return text


def with_order(text: str, route: str, pools: tuple[str, ...]) -> str:
    """The policy with another order of a route's pools."""
    head = rf"^  - name: {re.escape(route)}$"
    return _in_entry(text, head, r"pools: \[[^\]]*\]", f"pools: [{', '.join(pools)}]", route)


def _in_entry(text: str, head: str, old: str, new: str, name: str) -> str:
    """Replace ``old`` once in the entry that begins with the line ``head`` and ends before the next of its level."""
    begin = re.search(head, text, re.MULTILINE)
    if begin is not None:
        end = re.compile(r"^ {0,2}[\w-]", re.MULTILINE).search(text, begin.end() + 1)
        stop = end.start() if end is not None else len(text)
        entry, changed = re.subn(old, new, text[begin.start() : stop], count=1)
        if changed:
            return text[: begin.start()] + entry + text[stop:]
    raise DemoPolicyError(f"{NAME} has no {name} of the form the demo knows: take the file as it was")


def place(path: Path, text: str) -> None:
    """Write the policy in one step: a reader sees the old file or the new one."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text)
    draft.replace(path)


def compiled(path: Path) -> Table:
    """The policy as the gateway reads it, without its secrets. Raises ``DemoPolicyError`` with the findings."""
    try:
        return compile_table(load(path).document, 0, {}, unresolved)
    except PolicyRejectedError as error:
        raise DemoPolicyError(f"the demo's policy is not good:{os.linesep}{error}") from error


def bans(path: Path) -> tuple[Ban, Ban]:
    """The demo's two constraints, on privileged tools and on long contexts, with the pools that each forbids."""
    table = compiled(path)
    document = orjson.loads(load(path).document)
    found: dict[bool, Ban] = {}
    for rule, constraint in zip(document.get("constraints", []), table.constraints, strict=True):
        least = rule.get("when", {}).get("context_tokens", {}).get("gte", 0)
        forbidden = tuple(pool.name for pool in table.pools.values() if not constraint.permits(pool))
        found[least > 0] = Ban(constraint.name, forbidden, least)
    if set(found) != {False, True}:
        raise DemoPolicyError(f"{NAME} needs its constraints on privileged tools and on long contexts")
    return found[False], found[True]
