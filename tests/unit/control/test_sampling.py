"""Texts for replay: opt-out first, then the rules; redacted, capped, sealed, and never in a log or row as text."""

from typing import Any

import pytest

from gateway.control.sampling import WAITING_MOST, Sampling, opted_out
from gateway.control.scoring import Scored
from gateway.core.quality import Check
from gateway.core.redaction import MASK, Redactor
from gateway.model.outcome import Capture
from gateway.model.proving import Samples
from gateway.model.table import Tenant
from gateway.store.samples import SampleRow, Sealer
from tests.unit.control.conftest import outcome
from tests.unit.control.exchanges import SECRET, inspection, until
from tests.unit.dataplane.outcome_values import with_fields

KEY = "0123456789abcdef0123"
SEALER = Sealer(KEY)


class Kept:
    """A sampler and what it kept. ``draw``: what its dice show."""

    def __init__(self, draw: float = 0.0, opted_out: frozenset[str] = frozenset(), **rules: Any) -> None:
        self.rows: list[SampleRow] = []
        self.sampling = Sampling(self.rows.append, lambda: draw)
        self.sampling.configure(Samples(**({"keep": 1.0, "key": KEY} | rules)), opted_out)
        self.taken = 0

    async def take(self, *found: Scored) -> list[SampleRow]:
        self.sampling.take_scored(found)
        await until(lambda: self.sampling._sealing == 0)
        return self.rows

    @property
    def counts(self) -> dict[str, float]:
        return {key[0]: row[0] for key, row in self.sampling.kept.rows.items()}


def seen(request: bytes = b"question", answer: bytes = b"answer", *failed: Check, **fields: Any) -> Scored:
    made = outcome(capture=Capture(request, answer, False), **fields)
    return Scored(made, inspection(*failed), None)


async def test_a_sample_can_be_opened_with_its_key_alone() -> None:
    """The row says when, whose, where and why; its texts are ciphertext."""
    kept = Kept(retention_s=100.0)
    (row,) = await kept.take(seen(SECRET.encode(), SECRET.encode(), request_id="r", pool="int4"))
    assert (row.request_id, row.tenant, row.bucket, row.pool, row.reason) == ("r", "acme", "m/short", "int4", "share")
    assert row.expires_at == row.at + 100.0
    assert SECRET.encode() not in row.sealed
    opened = SEALER.open("r", row.sealed)
    assert (opened.api, opened.request, opened.answer) == ("chat", SECRET.encode(), SECRET.encode())
    assert kept.counts == {"kept": 1}


@pytest.mark.parametrize("rule", [1.0, "incidents"])
async def test_an_opt_out_wins_over_every_rule(rule: object) -> None:
    """Over the default, over a rule for the tenant itself, and for incidents too."""
    kept = Kept(opted_out=frozenset({"acme"}), keep=rule, tenants={"acme": 1.0})
    assert await kept.take(seen(b"q", b"a", Check.JSON), seen(result="upstream_error")) == []


@pytest.mark.parametrize(
    ("rule", "draw", "failed", "reason"),
    [
        ("off", 0.0, (Check.JSON,), None),
        ("incidents", 0.0, (), None),
        ("incidents", 0.99, (Check.JSON,), "incident"),
        (0.5, 0.4, (), "share"),
        (0.5, 0.4, (Check.JSON,), "incident"),
        (0.5, 0.5, (), None),
        (0.0, 0.0, (Check.JSON,), None),
    ],
)
async def test_rules(rule: object, draw: float, failed: tuple[Check, ...], reason: str | None) -> None:
    """Off keeps nothing, incidents what failed, a share what the dice say; the reason tells which."""
    rows = await Kept(draw, keep=rule).take(seen(b"q", b"a", *failed))
    assert [row.reason for row in rows] == ([reason] if reason else [])


async def test_an_error_of_the_pool_is_an_incident_without_a_check() -> None:
    """As far as its texts reached control."""
    broken = with_fields(seen().outcome, result="upstream_truncated")
    (row,) = await Kept(keep="incidents").take(Scored(broken))
    assert row.reason == "incident"


async def test_a_tenants_own_rule_replaces_the_default() -> None:
    """In both directions."""
    kept = Kept(keep="off", tenants={"acme": 1.0})
    rows = await kept.take(seen(request_id="a"), seen(request_id="b", tenant="globex"))
    assert [row.request_id for row in rows] == ["a"]


async def test_texts_are_redacted_before_they_are_cut() -> None:
    """A number that the cap would cut in half is masked whole; patterns see bytes of any kind."""
    kept = Kept(redact=(r"\b\d{16}\b", "(?i)marmalade"), most_bytes=24)
    text = b"\xff card 1234567890123456 MarmaLade"
    (row,) = await kept.take(seen(text, text, request_id="r"))
    opened = SEALER.open("r", row.sealed)
    assert opened.request == opened.answer == (b"\xff card " + MASK + b" " + MASK)[:24]


async def test_a_secret_that_a_stream_split_is_redacted() -> None:
    """Of the answer the assembled text counts, not its pieces."""
    pieces = [b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % part for part in (b"marma", b"lade")]
    (row,) = await Kept(redact=("(?i)marmalade",)).take(seen(b"{}", b"".join(pieces), request_id="r"))
    answer = SEALER.open("r", row.sealed).answer
    assert MASK in answer
    assert b"lade" not in answer


async def test_a_pattern_takes_linear_time() -> None:
    """RE2: an expression that would take a backtracking engine for ever is done at once."""
    kept = Kept(redact=("(a+)+$",), most_bytes=10)
    assert len(await kept.take(seen(b"a" * 200_000 + b"!"))) == 1


async def test_without_a_usable_key_nothing_is_kept() -> None:
    """No key, or one that is too short: no text leaves memory."""
    for key in (None, "short"):
        assert await Kept(key=key).take(seen(b"q", b"a", Check.JSON)) == []


async def test_what_has_no_texts_keeps_none() -> None:
    """An outcome that came without a capture."""
    assert await Kept().take(Scored(outcome(), inspection(Check.JSON))) == []


async def test_sealing_never_piles_up() -> None:
    """More than a few hundred at a time are given up and counted."""
    kept = Kept()
    await kept.take(*(seen(request_id=str(index)) for index in range(WAITING_MOST + 50)))
    assert kept.counts["busy"] >= 1
    assert kept.counts["kept"] + kept.counts["busy"] == WAITING_MOST + 50 == len(kept.rows) + kept.counts["busy"]


async def test_a_fault_while_sealing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of the text is in what is logged of it."""
    kept = Kept()
    monkeypatch.setattr(Redactor, "text", lambda self, text: 1 / 0)
    assert await kept.take(seen()) == []
    assert kept.counts == {"failed": 1}


def test_tenants_opt_out_by_capture_false() -> None:
    """As the policy spells it."""
    assert opted_out({"a": Tenant("a", capture=False), "b": Tenant("b")}) == frozenset({"a"})
