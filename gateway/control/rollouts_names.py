"""Names of the judge's series in reports to other gateways, and what a report says of them.

Owns the names of the policy in force, made once each. Called by ``rollouts_sharing``.
"""

from collections.abc import Iterator

import msgspec

from gateway.core.evidence import Judge, KeyedBlock, SeriesKey, SeriesSpec, Watched, name_of


class Names:
    """Names of the judge's series in reports, made once each."""

    def __init__(self) -> None:
        self._salt = ""
        self._known: dict[SeriesKey, tuple[SeriesSpec, str]] = {}

    def of(self, judge: Judge, salt: str) -> dict[str, Watched]:
        """What is watched now, by name."""
        if salt != self._salt:
            self._salt, self._known = salt, {}
        return dict(self._watched(judge))

    def name(self, key: SeriesKey) -> str:
        """The name of a series that was watched when ``of`` was asked last."""
        return self._known[key][1]

    def _watched(self, judge: Judge) -> Iterator[tuple[str, Watched]]:
        for key in judge.keys():  # noqa: SIM118 - a method
            spec = judge.series(key).spec
            known = self._known.get(key)
            if known is None or known[0] is not spec:
                known = self._known[key] = (spec, name_of(key, spec, self._salt))
            yield known[1], Watched(key, spec.block_s, spec.lag_s)


def moved(block: KeyedBlock, one: Watched | None, was_s: float, now_s: float) -> KeyedBlock:
    """A block that was closed before the clock was set, by the clock of now; as it was if nobody watches it now."""
    if one is None:
        return block
    number = block.record.number + one.blocks_between(was_s, now_s)
    return block._replace(record=msgspec.structs.replace(block.record, number=number))
