"""The admin API over shadow traffic: pairs, one pair with its texts for who has the key, and the excess difference.
Documented in docs/shadow.md.

Owns paths, parameters and shapes. Reads only, in threads. Pages are newest first with a cursor that later rows do not
move. No text is in an answer, except of a pair that was sampled and whose key the caller sends along.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson
from aiohttp import web
from sqlalchemy import Engine
from sqlalchemy.engine import RowMapping

from gateway.control.answers import cursor_of, error_answer, json_answer
from gateway.control.archive import Archive
from gateway.control.pairing import Standing
from gateway.control.reads import as_text, flag_of, guarded, page_of, read
from gateway.core.span import read_moment
from gateway.store import pairs, samples
from gateway.store.engine import StoreError
from gateway.store.pairs import Filter, LossRow, PairRow

FIELDS = ("bucket", "baseline", "candidate", "rule", "tenant", "verdict")
PARAMETERS = frozenset({"since", "until", "failed", "limit", "cursor", *FIELDS})
EXCESS_PARAMETERS = PARAMETERS - {"failed", "limit", "cursor", "verdict"}
EXCESS_S = 7 * 86_400.0
GROUPS_MOST = 5_000
_JSON = ("parts", "noise_parts", "likelihood")
_UNKNOWN = ("ttft_baseline_s", "ttft_candidate_s", "total_baseline_s", "total_candidate_s")


class PairsApi:
    """Handlers. ``wall`` is the clock of records."""

    def __init__(self, archive: Archive, wall: Callable[[], float]) -> None:
        self._archive = archive
        self._wall = wall

    def routes(self) -> list[web.RouteDef]:
        """Every path with its handler."""
        return [
            web.get("/api/v1/pairs", guarded(self.pairs, PARAMETERS)),
            web.get("/api/v1/pairs/{request_id}", guarded(self.pair)),
            web.get("/api/v1/excess", guarded(self.excess, EXCESS_PARAMETERS)),
        ]

    async def pairs(self, request: web.Request) -> web.Response:
        """A page of pairs, newest first."""
        query = request.query
        before, most = page_of(query)
        rows = await read(self._archive, pairs.page, self._filter(query), before, most)
        body = {
            "pairs": [pair_of(row) for row in rows],
            "next_cursor": cursor_of(rows[-1]["id"]) if len(rows) == most else None,
        }
        return json_answer(body, request)

    async def pair(self, request: web.Request) -> web.Response:
        """One pair; with the samples' key in ``x-quantgate-samples-key`` also its texts, if they were kept."""
        request_id = request.match_info["request_id"]
        row = await read(self._archive, pairs.of_request, request_id)
        if row is None:
            return error_answer(404, "pair_not_found", f"There is no pair of request {request_id}.")
        kept = await read(self._archive, samples.of_pair, request_id)
        found = pair_of(row) | {"texts_kept": kept is not None}
        key = request.headers.get(samples.KEY_HEADER)
        if key is None or kept is None:
            return json_answer(found, request)
        try:
            opened = await asyncio.to_thread(lambda: samples.Sealer(key).open(kept.request_id, kept.sealed))
        except StoreError as error:
            return error_answer(403, "wrong_key", str(error))
        found |= {"api": opened.api, "request": as_text(opened.request), "answers": answers_of(opened)}
        answer = json_answer(found)
        answer.headers["Cache-Control"] = "no-store"
        return answer

    async def excess(self, request: web.Request) -> web.Response:
        """Excess difference per bucket, candidate and baseline, of the last seven days unless ``since`` says other."""
        query = request.query
        wanted = self._filter(query)
        if wanted.since is None:
            wanted = wanted._replace(since=self._wall() - EXCESS_S)
        rows = await read(self._archive, _excess, wanted)
        return json_answer({"since": wanted.since, "until": wanted.until, "excess": rows}, request)

    def _filter(self, query: Mapping[str, str]) -> Filter:
        now = self._wall()
        return Filter(
            since=read_moment(query["since"], now) if "since" in query else None,
            until=read_moment(query["until"], now) if "until" in query else None,
            failed=flag_of(query, "failed"),
            **{name: query.get(name, "") for name in FIELDS},
        )


def pair_of(row: RowMapping) -> dict[str, Any]:
    """A row as JSON: parts as objects, what is unknown (-1 in the database) as null."""
    found = {key: row[key] for key in PairRow._fields}
    found |= {key: orjson.loads(row[key]) for key in _JSON}
    found |= {key: None for key in _UNKNOWN if row[key] < 0}
    return found


def answers_of(sample: samples.Sample) -> dict[str, Any]:
    """The texts of a pair by leg; None where a leg gave none."""
    legs = {"baseline": sample.answer, "candidate": sample.candidate, "noise": sample.noise}
    return {leg: as_text(text) if text else None for leg, text in legs.items()}


class _Account:
    """Everything that the pairs of one (bucket, candidate, baseline) say."""

    def __init__(self) -> None:
        self.standing = Standing()
        self.verdicts: dict[str, int] = {}
        self.sums: dict[str, tuple[int, float]] = {}

    def add(self, row: LossRow) -> None:
        self.verdicts[row.verdict] = self.verdicts.get(row.verdict, 0) + 1
        for name in ("agreement", "noise", "likelihood_gap"):
            value = getattr(row, name)
            if value is not None:
                number, total = self.sums.get(name, (0, 0.0))
                self.sums[name] = number + 1, total + value
        if row.loss is not None:
            self.standing.add(row.loss)

    def as_value(self) -> dict[str, Any]:
        standing = self.standing
        interval = standing.interval() if standing.number else None
        means = {name: total / number for name, (number, total) in self.sums.items()}
        return {
            "mean": standing.total / standing.number if standing.number else None,
            "low": interval.lower if interval else None,
            "high": interval.upper if interval else None,
            "number": standing.number,
            "pairs": sum(self.verdicts.values()),
            "verdicts": self.verdicts,
            **{f"{name}_mean": means.get(name) for name in ("agreement", "noise", "likelihood_gap")},
            "likelihood_gap_number": self.sums.get("likelihood_gap", (0, 0.0))[0],
        }


def _excess(engine: Engine, wanted: Filter) -> list[dict[str, Any]]:
    """One scan in the order of arrival, as the interval needs it."""
    return account(pairs.losses(engine, wanted))


def account(rows: Iterator[LossRow]) -> list[dict[str, Any]]:
    """Excess differences of rows in their order, by group, the most pairs first."""
    accounts: dict[tuple[str, str, str], _Account] = {}
    for row in rows:
        key = (row.bucket, row.candidate, row.baseline)
        found = accounts.get(key)
        if found is None:
            if len(accounts) >= GROUPS_MOST:
                continue
            found = accounts[key] = _Account()
        found.add(row)
    named = [
        {"bucket": bucket, "candidate": candidate, "baseline": baseline, **found.as_value()}
        for (bucket, candidate, baseline), found in accounts.items()
    ]
    return sorted(named, key=lambda row: -row["pairs"])
