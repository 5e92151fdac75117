"""A server's own log and counters are read as they are, and nothing is made up where they say nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.demo.witness import Counters, Sighting, finished, mark_of, read_counters, read_sightings

# Lines of llama.cpp b11549, as its server writes them.
LOG = """\
0.01.776.030 I slot   load_model: id  0 | task -1 | new slot, n_ctx = 8192
0.01.792.637 I slot get_availabl: id  0 | task -1 |  - skipping, slot is empty
0.01.792.814 I slot launch_slot_: id  1 | task -1 | sampler params:
\trepeat_last_n = 64, repeat_penalty = 1.000, frequency_penalty = 0.000, presence_penalty = 0.000
\tdry_multiplier = 0.000, dry_base = 1.750, dry_allowed_length = 1017, dry_penalty_last_n = 64
\ttop_k = 40, top_p = 0.950, min_p = 0.050, xtc_probability = 0.000, xtc_threshold = 0.100, temp = 0.800
0.01.792.829 I slot launch_slot_: id  1 | task 0 | processing task, is_child = 0
0.01.792.849 I slot   operator(): id  1 | task 0 | new prompt, n_ctx_slot = 8192, n_keep = 0, task.n_tokens = 32
0.01.792.866 I slot   operator(): id  1 | task 0 | cached n_tokens = 0, memory_seq_rm [0, end)
0.02.536.170 I slot print_timing: id  1 | task 0 |       total time =     743.24 ms /    52 tokens
\tdry_multiplier = 0.000, dry_base = 1.750, dry_allowed_length = 2, dry_penalty_last_n = 64
0.02.539.200 I slot launch_slot_: id  0 | task 21 | processing task, is_child = 0
0.02.539.300 I slot   operator(): id  0 | task 21 | new prompt, n_ctx_slot = 8192, n_keep = 0, task.n_tokens = 141
0.02.536.958 I slot      release: id  1 | task 0 | stop processing: n_tokens = 51, truncated = 0
"""

METRICS = """\
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed, excluding cached tokens
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 1170
llamacpp:prompt_tokens_cached_total 24
llamacpp:tokens_predicted_total 43
llamacpp:prompt_tokens_seconds 53.3347
llamacpp:n_tokens_max 1150
"""


def test_requests_are_read_with_their_number_and_their_tokens() -> None:
    """A marked request is known again; one without a mark is seen too, and one that still runs has no end."""
    sightings = read_sightings(LOG)
    assert sightings == (Sighting(17, 0, 32, 51), Sighting(-1, 21, 141, -1))
    assert not finished(sightings)
    assert finished(sightings[:1])


def test_an_empty_log_holds_nothing() -> None:
    """No line is no request."""
    assert read_sightings("") == ()


@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(1, 9_000), st.integers(0, 99)), max_size=20), st.randoms())
def test_requests_that_overlap_are_kept_apart(requests: list[tuple[int, int, int]], random: object) -> None:
    """Whatever the order in which prompts are read and answers end, each request gets its own numbers."""
    del random
    begun = []
    for task, (number, prompt, _) in enumerate(requests):
        begun += [
            f"\tdry_multiplier = 0.000, dry_allowed_length = {mark_of(number)}, dry_penalty_last_n = 64",
            f"0.1 I slot launch_slot_: id  {task % 2} | task {task} | processing task, is_child = 0",
            f"0.1 I slot   operator(): id  0 | task {task} | new prompt, n_ctx_slot = 8, task.n_tokens = {prompt}",
        ]
    ends = [
        f"0.2 I slot      release: id  0 | task {task} | stop processing: n_tokens = {prompt + made}, truncated = 0"
        for task, (_, prompt, made) in reversed(list(enumerate(requests)))
    ]
    assert read_sightings("\n".join(begun + ends)) == tuple(
        Sighting(number, task, prompt, prompt + made) for task, (number, prompt, made) in enumerate(requests)
    )


def test_counters_are_read_with_what_came_from_the_cache() -> None:
    """Cached prompt tokens count as prompt tokens; the longest context is the server's own maximum."""
    assert read_counters(METRICS) == Counters(1194, 43, 1150)


def test_counters_after_a_moment() -> None:
    """What was there before the workload is not part of it."""
    assert Counters(100, 50, 40).since(Counters(30, 20, 35)) == Counters(70, 30, 40)


@pytest.mark.parametrize("missing", ["prompt_tokens_total", "tokens_predicted_total", "n_tokens_max"])
def test_a_missing_counter_is_no_zero(missing: str) -> None:
    """Where a server does not tell a number, there is none."""
    with pytest.raises(ValueError, match=missing):
        read_counters(METRICS.replace(f"llamacpp:{missing}", "other"))
