"""Which pools are not asked for scores, and how much text is scored at once."""

import dataclasses

import pytest

from gateway.control.likelihood_caution import SUSPENDED_S, Caution, tokens_at_once
from gateway.core.comparison import Scoring
from gateway.model.precision import Precision
from gateway.model.table import Endpoint, Pool
from tests.unit.dataplane.pair_values import make_leg

POOL = Pool("int4", "m", "vllm", Precision("int4"), (Endpoint("int4/0", "int4", "http", "h", 1, ""),))


def test_a_pool_with_adapters_is_not_asked_for_a_whole_prompts_scores() -> None:
    """By the policy or by what the runtime lists; other ways of scoring do not touch what vLLM trips over."""
    caution = Caution(lambda: 0.0)
    served = dataclasses.replace(POOL, adapters={"a": "a"})
    assert caution.objection(POOL, Scoring.PROMPT_LOGPROBS) == ""
    assert caution.objection(served, Scoring.PROMPT_LOGPROBS) == "adapters"
    assert caution.objection(served, Scoring.INPUT_TOKEN_LOGPROBS) == ""
    caution.serves_adapters = lambda pool: pool == "int4"
    assert caution.objection(POOL, Scoring.PROMPT_LOGPROBS) == "adapters"


def test_a_pool_that_broke_is_left_in_peace_for_an_hour() -> None:
    """That pool, and no other."""
    now = [5.0]
    caution = Caution(lambda: now[0])
    caution.broke("int4", "ServerDisconnectedError")
    assert caution.objection(POOL, Scoring.FORCED_DECODING) == "suspended"
    assert caution.objection(dataclasses.replace(POOL, name="bf16"), Scoring.FORCED_DECODING) == ""
    now[0] += SUSPENDED_S
    assert caution.objection(POOL, Scoring.FORCED_DECODING) == ""


@pytest.mark.parametrize(
    ("scoring", "tokens"),
    [(Scoring.PROMPT_LOGPROBS, 130), (Scoring.INPUT_TOKEN_LOGPROBS, 30), (Scoring.FORCED_DECODING, 0)],
)
def test_the_longer_answer_counts_as_far_as_its_scores_are_held_together(scoring: Scoring, tokens: int) -> None:
    """Prompt and answer, the answer, nothing."""
    legs = [make_leg(prompt_tokens=100, completion_tokens=30), make_leg(prompt_tokens=100, completion_tokens=7)]
    assert tokens_at_once(scoring, b"", legs) == tokens


def test_what_no_runtime_counted_is_estimated() -> None:
    """From the bytes."""
    leg = make_leg(prompt_tokens=-1, completion_tokens=-1, answer=b"x" * 30)
    assert tokens_at_once(Scoring.PROMPT_LOGPROBS, b"y" * 60, [leg]) == 30
