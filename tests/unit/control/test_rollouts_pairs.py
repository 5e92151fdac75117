"""Shadow pairs into series: losses, missing ones, gaps, and both legs in shadow stages."""

import msgspec
import pytest

from gateway.control.guards import series_of
from gateway.control.rollouts_feeds import BucketFeed
from gateway.core.evidence import Budget, Judge, SeriesKey
from gateway.core.evidence.pairs import PairLoss
from gateway.model.pair import Leg, Pair
from gateway.model.proving import Guard
from tests.unit.control.rollout_rig import inspection, rollout_policy

PLAN = rollout_policy().rollouts[0]
AT = 1_000.0
GUARDS = (
    Guard("quality", "agreement", margin=0.02),
    Guard("gap", "likelihood_gap", margin=0.1),
    Guard("errors", "error_rate", limit=0.01, feed="vote"),
    Guard("ttft", "ttft", limit=2.0, quantile=0.99),
    Guard("json", "format_error_rate", limit=0.01, margin=0.01),
)
BASELINE = Leg("bf16", "bf16/0", 200, "", b"", 0.1, 1.0, 1.1, 10, 11)
CANDIDATE = msgspec.structs.replace(BASELINE, pool="int4", endpoint="int4/0")


class Fed:
    """A feed in a shadow stage."""

    def __init__(self, *guards: Guard) -> None:
        self.judge = Judge(Budget())
        wanted = [one for guard in guards or GUARDS for one in series_of(guard)]
        self.feed = BucketFeed(self.judge, PLAN, "b", wanted, AT)
        self.feed.shadowing = True
        for one in wanted:
            for key, spec in self.feed.keys(one):
                self.judge.register(key, spec, AT)

    def counts(self, name: str, pool: str = "int4") -> dict[float, int]:
        """Values of the open block; -1 = unscored."""
        timeline = self.judge.series(SeriesKey(name, "b", pool)).timeline
        block = timeline.pending.get(timeline.number_at(AT))
        if block is None:
            return {}
        found = {value: count for (_, value), count in block.cells.items()}
        return found | ({-1.0: block.unscored} if block.unscored else {})


@pytest.fixture
def fed() -> Fed:
    """Fresh."""
    return Fed()


def pair(candidate: Leg = CANDIDATE, baseline: Leg = BASELINE) -> Pair:
    return Pair("p1", AT + 0.5, "s", "t", "m", "b", "chat", "chat", True, "c", b"", baseline, candidate, baseline)


def test_losses_are_booked_in_hundredths_and_unscored_pairs_are_missing(fed: Fed) -> None:
    """A broken scorer must neither trip nor promote."""
    fed.feed.take_pair(pair(), PairLoss(0.123, 0.123))
    fed.feed.take_pair(pair(), PairLoss(None, 1.0, unscored=True))
    fed.feed.take_pair(pair(), None)
    assert fed.counts("quality") == {0.12: 1, -1.0: 1}
    assert fed.counts("quality.missing") == {0.0: 1, 1.0: 1}
    assert list(fed.feed.culprits["quality"]) == ["p1"]


def test_gaps_are_scaled_and_go_to_their_own_guard(fed: Fed) -> None:
    """Agreement's series does not hear of them."""
    fed.feed.take_gap(pair(), 0.15)
    assert fed.counts("gap") == {0.5: 1}
    assert fed.counts("quality") == {}


def test_in_shadow_stages_both_legs_count(fed: Fed) -> None:
    """Errors, first tokens and checks; legs that never ran say nothing."""
    slow = msgspec.structs.replace(CANDIDATE, ttft_s=3.0)
    fed.feed.take_pair(pair(slow), None, inspection(), inspection(json=False))
    failed = msgspec.structs.replace(CANDIDATE, failure="status_5xx", ttft_s=-1.0)
    fed.feed.take_pair(pair(failed), None, inspection(), None)
    shed = msgspec.structs.replace(CANDIDATE, failure="shed", ttft_s=-1.0)
    fed.feed.take_pair(pair(shed), None, None, None)
    assert fed.counts("errors.shadow") == {0.0: 1, 1.0: 1}
    assert fed.counts("errors.shadow", "bf16") == {0.0: 3}
    assert fed.counts("ttft.shadow") == {1.0: 1}
    assert fed.counts("json.shadow") == {1.0: 1}
    assert fed.counts("json.shadow", "bf16") == {0.0: 2}
    assert fed.counts("json.margin.shadow") == {1.0: 1}


def test_mirrored_latencies_are_judged_as_live_ones() -> None:
    """Within the baseline's multiple is quick enough, gaps are measured, and what failed has no pace of tokens."""
    fed = Fed(
        Guard("ttft", "ttft", limit=2.0, quantile=0.9, or_ratio=1.5, block_s=10.0),
        Guard("tpot", "tpot", limit=0.5, quantile=0.9),
        Guard("gap", "token_gap", limit=0.5, quantile=0.9),
    )
    slow = msgspec.structs.replace(BASELINE, ttft_s=2.0, longest_gap_s=0.2)
    for _ in range(100):
        fed.feed.take_pair(msgspec.structs.replace(pair(baseline=slow), at=AT - 10), None)
    for ttft_s, gap_s in ((2.9, 0.4), (3.2, 0.6)):
        fed.feed.take_pair(pair(msgspec.structs.replace(CANDIDATE, ttft_s=ttft_s, longest_gap_s=gap_s), slow), None)
    for failure in ("timeout", "first_byte_timeout"):
        fed.feed.take_pair(pair(msgspec.structs.replace(CANDIDATE, failure=failure), slow), None)
    assert fed.counts("ttft.shadow") == {0.0: 1, 1.0: 3}
    assert fed.counts("gap.shadow") == {0.0: 1, 1.0: 1}
    assert fed.counts("tpot.shadow") == {0.0: 2}


def test_pairs_of_other_pools_are_not_booked_on_the_candidate(fed: Fed) -> None:
    """Another shadow rule may try the rollout's baseline beside a third pool, or the candidate beside one."""
    third = msgspec.structs.replace(BASELINE, pool="fp32", endpoint="fp32/0")
    for other in (pair(BASELINE, third), pair(CANDIDATE, third), pair(BASELINE, CANDIDATE)):
        fed.feed.take_pair(other, PairLoss(0.9, 0.9), inspection(), inspection(json=False))
        fed.feed.take_gap(other, 9.0)
    names = ("quality", "quality.missing", "gap", "errors.shadow", "json.shadow", "json.margin.shadow")
    assert [fed.counts(name) for name in names] == [{}] * len(names)
    nowhere = msgspec.structs.replace(BASELINE, pool="", failure="connect")
    fed.feed.take_pair(pair(baseline=nowhere), PairLoss(None, None))
    assert fed.counts("quality") == {-1.0: 1}
    assert fed.counts("errors.shadow", "bf16") == {1.0: 1}


def test_in_live_stages_only_agreement_goes_on(fed: Fed) -> None:
    """Live traffic speaks for itself there; other candidates' pairs never count."""
    fed.feed.shadowing = False
    fed.feed.take_pair(pair(), PairLoss(0.0, 0.0), inspection(), inspection(json=False))
    assert fed.counts("quality") == {0.0: 1}
    assert fed.counts("json.shadow") == {}
    fed.feed.take_pair(pair(msgspec.structs.replace(CANDIDATE, pool="fp8")), PairLoss(0.9, 0.9))
    fed.feed.take_gap(pair(msgspec.structs.replace(CANDIDATE, pool="fp8")), 9.0)
    assert fed.counts("quality") == {0.0: 1}
    assert fed.counts("gap") == {}
