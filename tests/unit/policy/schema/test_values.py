"""Numbers, durations, shares and names as people write them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from gateway.policy.schema import values


def read(kind: Any, written: object) -> Any:
    return TypeAdapter(kind).validate_python(written)


def refusal(kind: Any, written: object) -> str:
    with pytest.raises(ValidationError) as caught:
        read(kind, written)
    (detail,) = caught.value.errors()
    return f"{detail['msg']} {detail.get('ctx', {}).get('mend', '')}"


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        (values.Tokens, "2k", 2048),
        (values.Tokens, "128k", 131_072),
        (values.Tokens, "1m", 1024**2),
        (values.Tokens, 4096, 4096),
        (values.Count, "6k", 6000),
        (values.Count, "4e6", 4_000_000),
        (values.Rate, "4e6", 4e6),
        (values.Rate, 0.5, 0.5),
        (values.Size, "32MiB", 32 * 1024**2),
        (values.Size, "64k", 65_536),
        (values.Size, "1MB", 1_000_000),
        (values.Duration, "24h", 86_400.0),
        (values.Duration, "500ms", 0.5),
        (values.Duration, "1h30m", 5400.0),
        (values.Duration, 2.5, 2.5),
        (values.Share, "5%", 0.05),
        (values.Share, "0.5%", 0.005),
        (values.Share, 0.2, 0.2),
        (values.Share, 0, 0.0),
        (values.Share, 1.0, 1.0),
        (values.Many[str], "one", ["one"]),
        (values.Many[str], ["one", "two"], ["one", "two"]),
        (values.Presence, True, "present"),
        (values.TrafficShare, "0.01%", 0.0001),
        (values.TrafficShare, "0%", 0.0),
    ],
)
def test_is_read_as_meant(kind: Any, written: object, meant: object) -> None:
    """A spelling of policy.md gives the number it stands for; k is 1024 of tokens and bytes, 1000 of anything else."""
    assert read(kind, written) == meant


@pytest.mark.parametrize(
    ("kind", "written", "said"),
    [
        (values.Tokens, "2x", "tokens"),
        (values.Tokens, "1.0001k", "without a fraction"),
        (values.Tokens, -1, "not below 0"),
        (values.Tokens, True, "expected"),
        (values.Tokens, "1e99", "beyond all measure"),
        (values.Count, 0, "at least 1"),
        (values.Rate, 0, "above 0"),
        (values.Duration, 5, "did you mean 5s?"),
        (values.Duration, "5", "a duration such as"),
        (values.Duration, "2s later", "a duration such as"),
        (values.Duration, "1000y", "at most 100 years"),
        (values.Duration, float("nan"), "at most 100 years"),
        (values.PositiveDuration, "0s", "above 0"),
        (values.Share, 5, "did you mean 5%?"),
        (values.Share, "150%", "between 0% and 100%"),
        (values.Share, "5k", "a share such as"),
        (values.Share, "5", "did you mean 5%?"),
        (values.PositiveShare, "0%", "above 0"),
        (values.TrafficShare, "0.009%", "at least 0.01%"),
        (values.StageShare, "0%", "above 0"),
        (values.Size, 32, "did you mean 32MiB?"),
        (values.Many[str], [], "empty"),
        (values.Many[str], ["a", "b", "b"], "names 'b' twice"),
        (values.Distinct[str], ["a", "a"], "names 'a' twice"),
        (values.Name, "has space", "cannot be the name"),
        (values.Name, "x" * 64, "cannot be the name"),
        (values.Word, "Code", "lower-case"),
        (values.ServedName, "-m", "cannot be the name"),
    ],
)
def test_is_refused_with_what_was_expected(kind: Any, written: object, said: str) -> None:
    """A spelling that could mean two things, or nothing, is refused and the mend is named."""
    assert said in refusal(kind, written)


def test_a_unit_that_is_written_was_not_forgotten() -> None:
    """A mend is told where it may be one."""
    assert "did you mean" not in refusal(values.Size, "1kb")


def test_the_nearest_word_is_suggested() -> None:
    """A closed set of words answers a typo with the word that was meant, and lists the set."""
    from typing import Annotated

    said = refusal(Annotated[str, values.Among(("vllm", "sglang"))], "vlm")
    assert "vllm, sglang" in said
    assert "did you mean 'vllm'?" in said
    assert values.did_you_mean("zzz", ("vllm",)) == ""


@given(st.sampled_from([values.Tokens, values.Size, values.Rate, values.Duration, values.Share]), st.data())
def test_the_normal_form_reads_back_as_itself(kind: Any, data: Any) -> None:
    """What a policy is dumped as is what it was read as: digests follow meaning."""
    units = {values.Duration: ["s", "h", "ms"], values.Share: ["%"]}.get(kind, ["", "k"])
    number = data.draw(st.integers(1, 100)) * (1024 if kind is values.Size else 1)
    normal = read(kind, f"{number}{data.draw(st.sampled_from(units))}")
    assert read(kind, normal) == normal


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No spelling makes a parser fail in another way."""
    for kind in (values.Tokens, values.Rate, values.Duration, values.Share):
        try:
            read(kind, text)
        except ValidationError as error:
            assert error.error_count() == 1
