"""What constraints ask of a pool, compiled: permitted or not, and the objection in words.

``require`` is strict: a trait the pool does not declare is not there. ``forbid`` hits what is declared, and a general
format name hits every exact one under it (``int4`` forbids ``q4_k_m`` too), so that a constraint errs on the side of
keeping out. Pure.
"""

from collections.abc import Callable

import msgspec

from gateway.model.table import Pool
from gateway.policy.conditions import either
from gateway.policy.formats import family
from gateway.policy.schema.rules import Constraint, PoolTraits


class Trait(msgspec.Struct, frozen=True):
    """One trait: whether a pool has it, what it is in words, and what the pool has instead."""

    holds: Callable[[Pool], bool]
    words: str
    shown: Callable[[Pool], str]


class Requirement(msgspec.Struct, frozen=True):
    """What a constraint asks of a pool."""

    words: str
    objection: Callable[[Pool], str]


def requirement_of(constraint: Constraint) -> Requirement:
    """Compile ``require`` and ``forbid`` together. ``objection`` is empty for a pool that is permitted."""
    wanted = _traits(constraint.require, exact=True) if constraint.require else []
    banned = _traits(constraint.forbid, exact=False) if constraint.forbid else []

    def objection(pool: Pool) -> str:
        faults = [f"{trait.shown(pool)}, but it must be {trait.words}" for trait in wanted if not trait.holds(pool)]
        faults += [f"{trait.shown(pool)}, but {trait.words} is forbidden" for trait in banned if trait.holds(pool)]
        return "; ".join(faults)

    said = [trait.words for trait in wanted] + [f"not {trait.words}" for trait in banned]
    return Requirement(" and ".join(said), objection)


def _traits(traits: PoolTraits, exact: bool) -> list[Trait]:
    found = [
        _format_trait(field, values, exact) for field in _FORMATS if (values := getattr(traits, field)) is not None
    ]
    found += [_word_trait(field, values) for field in _WORDS if (values := getattr(traits, field)) is not None]
    for field in ("dynamic_scales", "emulated"):
        if (wanted := getattr(traits, field)) is not None:
            found.append(_switch_trait(field, wanted))
    if (bounds := traits.compute_capability) is not None:
        low = float(bounds.gte) if bounds.gte else 0.0
        high = float(bounds.lt) if bounds.lt else 1000.0
        found.append(_capability_trait(low, high))
    found += [_label_trait(label, values) for label, values in (traits.labels or {}).items()]
    return found


_FORMATS = ("weights", "activations", "kv_cache")
_WORDS: dict[str, Callable[[Pool], str | None]] = {
    "pool": lambda pool: pool.name,
    "runtime": lambda pool: pool.runtime,
    "method": lambda pool: pool.precision.method,
    "gpu": lambda pool: pool.gpu,
    "device": lambda pool: pool.device,
}


def _format_trait(field: str, values: list[str], exact: bool) -> Trait:
    allowed = frozenset(values)

    def holds(pool: Pool) -> bool:
        word = getattr(pool.precision, field)
        if word in allowed or family(word) in allowed:
            return True
        return not exact and any(family(value) == word for value in allowed)

    label = field.replace("_", " ")
    return Trait(holds, f"{label} {either(values)}", lambda pool: f"{label} {getattr(pool.precision, field)}")


def _word_trait(field: str, values: list[str] | str) -> Trait:
    words = [values] if isinstance(values, str) else values
    allowed = frozenset(word.lower() for word in words)
    read = _WORDS[field]

    def holds(pool: Pool) -> bool:
        value = read(pool)
        return value is not None and value.lower() in allowed

    return Trait(holds, f"{field} {either(words)}", lambda pool: f"{field} {read(pool) or 'not declared'}")


def _switch_trait(field: str, wanted: bool) -> Trait:
    label = field.replace("_", " ")
    names = {True: label, False: "static scales" if field == "dynamic_scales" else f"not {label}"}
    return Trait(
        lambda pool: getattr(pool.precision, field) is wanted,
        names[wanted],
        lambda pool: names[getattr(pool.precision, field)],
    )


def _capability_trait(low: float, high: float) -> Trait:
    bounds = [f"≥ {low}" if low else "", f"< {high}" if high < 1000 else ""]
    return Trait(
        lambda pool: pool.compute_capability is not None and low <= pool.compute_capability < high,
        f"compute capability {' and '.join(bound for bound in bounds if bound)}",
        lambda pool: f"compute capability {pool.compute_capability or 'not declared'}",
    )


def _label_trait(label: str, values: list[str]) -> Trait:
    allowed = frozenset(values)
    return Trait(
        lambda pool: pool.labels.get(label) in allowed,
        f"label {label} {either(values)}",
        lambda pool: f"label {label} {pool.labels.get(label, 'not declared')}",
    )
