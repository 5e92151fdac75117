"""A path becomes a policy that is known to be good, or a rejection with every fault found.

Order: bytes at one moment, trees, one merged set, the schema, then what a schema cannot see. The result is the
canonical JSON that control publishes and workers compile; its digest depends on meaning only, not on comments or
layout. Called by control's reload and by the CLI.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath

import msgspec
import orjson
from pydantic import ValidationError

from gateway.errors import PolicyError, PolicyRejectedError
from gateway.policy.compile import DOCUMENT, table_of
from gateway.policy.document import Snapshot, snapshot
from gateway.policy.doubts import check_doubts
from gateway.policy.findings import explain_rejection
from gateway.policy.hardware import check_hardware
from gateway.policy.merge import merged_tree
from gateway.policy.reach import check_reach
from gateway.policy.references import check_references
from gateway.policy.schema import Policy
from gateway.policy.secret import unresolved
from gateway.policy.tree import Path, Place, Tree, dotted

REFERENCES = ("env:", "file:", "sha256:")


class Loaded(msgspec.Struct, frozen=True):
    """A good policy.

    ``document``: canonical JSON; ``digest``: its SHA-256 in hex; ``files``: those it was read from; ``secrets``: where
    each reference to a secret stands, by its dotted path.
    """

    document: bytes
    digest: str
    warnings: tuple[PolicyError, ...]
    files: tuple[str, ...]
    fingerprint: str
    secrets: Mapping[str, Place]

    def placed(self, findings: Iterable[PolicyError]) -> tuple[PolicyError, ...]:
        """Findings about the document, such as a secret that cannot be read, at the places where people wrote it."""
        return _ordered([self._placed(finding) for finding in findings], self.files)

    def _placed(self, finding: PolicyError) -> PolicyError:
        place = self.secrets.get(finding.message.partition(": ")[0]) if finding.file == DOCUMENT else None
        return finding if place is None else place.finding(finding.message, finding.mend, finding.severity)


def load(path: FilePath | str) -> Loaded:
    """Read and check the policy at ``path`` (file or folder). Raises ``PolicyRejectedError`` with all findings."""
    return load_snapshot(snapshot(FilePath(path)))


def load_snapshot(source: Snapshot) -> Loaded:
    """Check a policy whose bytes are at hand. Raises ``PolicyRejectedError`` with all findings."""
    policy, tree, files = read_policy(source)
    findings = [*check_references(policy, tree), *check_hardware(policy, tree)]
    _refuse_errors(findings, files)
    document = orjson.dumps(policy.canonical(), option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(document).hexdigest()
    findings += check_doubts(policy, tree)
    findings += check_reach(policy, table_of(policy, digest, 0, {}, unresolved), tree)
    _refuse_errors(findings, files)
    return Loaded(
        document, digest, _ordered(findings, files), files, source.fingerprint, dict(_secrets(tree.data, (), tree))
    )


def read_policy(source: Snapshot) -> tuple[Policy, Tree, tuple[str, ...]]:
    """The well-formed policy with its places; names and rules are not checked yet."""
    tree, findings, files = merged_tree(source)
    _refuse_errors(findings, files)
    try:
        policy = Policy.model_validate(tree.data)
    except ValidationError as error:
        raise PolicyRejectedError(_ordered(explain_rejection(error, tree), files)) from None
    return policy, tree, files


def _secrets(value: object, path: Path, tree: Tree) -> Iterator[tuple[str, Place]]:
    """Every reference to a secret below ``path``, with its place."""
    if isinstance(value, str) and value.startswith(REFERENCES):
        yield dotted(path), tree.place(path)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _secrets(inner, (*path, key), tree)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _secrets(inner, (*path, index), tree)


def _refuse_errors(findings: Sequence[PolicyError], files: tuple[str, ...]) -> None:
    if any(finding.severity == "error" for finding in findings):
        raise PolicyRejectedError(_ordered(findings, files))


def _ordered(findings: Sequence[PolicyError], files: tuple[str, ...]) -> tuple[PolicyError, ...]:
    order = {name: index for index, name in enumerate(files)}
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda finding: (order.get(finding.file, -1), finding.line, finding.column)))
