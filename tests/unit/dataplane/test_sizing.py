"""What a worker learns about a model's tokenizer: from text alone, so that nothing makes a long text look short."""

import dataclasses
from pathlib import Path

import pytest
import yaml

from gateway.core.tokens import Estimate
from gateway.dataplane.sizing import Sizes, Sizing
from gateway.model.enums import Api
from gateway.model.facts import Facts, Reading, Texts
from gateway.policy.compile import compile_table
from gateway.policy.load import load
from gateway.policy.secret import unresolved

MODEL = "smollm2-135m"
TEXT = "The pump ran for a while, and then it stopped again. " * 90  # about 1,080 tokens; the policy's bound is 1,024
SIZES = Sizes(compile_table(load(Path("routing_policies/demo.yaml")).document, 1, {}, unresolved))
SEEN = Estimate(4_000, True, True, 4_000.0, "count", 16_000)


def estimated(sizing: Sizing) -> int:
    """Tokens of a text near a bound, so that it is counted."""
    facts = Facts(Api.CHAT, MODEL, max_output_tokens=0, text_bytes=len(TEXT), messages=1)
    return sizing.estimate(SIZES, MODEL, Reading(facts, Texts(parts=(TEXT,)))).tokens


@pytest.mark.parametrize("extra", [{"tools": ("a",)}, {"images": 1}, {"audio": True}])
def test_only_text_teaches(extra: dict[str, object]) -> None:
    """A template that leaves tools out, or an image that is smaller than thought, bends no estimate of a text."""
    sizing, before = Sizing(), estimated(Sizing())
    for _ in range(20):
        sizing.learn(SIZES, MODEL, dataclasses.replace(Facts(Api.CHAT, MODEL), **extra), SEEN, reported=1_000, cached=0)
    assert estimated(sizing) == before
    for _ in range(20):
        sizing.learn(SIZES, MODEL, Facts(Api.CHAT, MODEL), SEEN, reported=6_000, cached=0)
    assert estimated(sizing) > before


def test_models_learn_apart() -> None:
    """What one model's runtime reports says nothing about another model."""
    sizing, before = Sizing(), estimated(Sizing())
    sizing.learn(SIZES, "other", Facts(Api.CHAT, "other"), SEEN, reported=8_000, cached=0)
    assert estimated(sizing) == before


def test_nothing_known_means_caution_and_reports_replace_it() -> None:
    """The first estimate errs upwards; what the runtime reports decides from then on."""
    sizing = Sizing()
    first = estimated(sizing)
    assert first > 1_080
    for _ in range(200):
        sizing.learn(SIZES, MODEL, Facts(Api.CHAT, MODEL), SEEN, reported=4_000, cached=0)
    assert estimated(sizing) < first / 1.1


def sized_by(tokenizer: dict[str, object], tmp_path: Path) -> Sizes:
    """Of the demo's policy with another tokenizer."""
    document = yaml.safe_load(Path("routing_policies/demo.yaml").read_text())
    document["models"][MODEL]["tokenizer"] = tokenizer
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(document))
    return Sizes(compile_table(load(file).document, 1, {}, unresolved))


def test_what_was_learnt_of_a_tokenizer_says_nothing_of_another(tmp_path: Path) -> None:
    """A reload that names another one begins anew, old requests teach the old one, and going back finds it again."""
    sizing = Sizing()
    old, new = sized_by({"bytes": True}, tmp_path), sized_by({"tiktoken": "cl100k_base"}, tmp_path)
    facts = Facts(Api.CHAT, MODEL, max_output_tokens=0, text_bytes=len(TEXT), messages=1)
    reading = Reading(facts, Texts(parts=(TEXT,)))

    def tokens(sizes: Sizes, by: Sizing) -> int:
        return by.estimate(sizes, MODEL, reading).tokens

    untaught = tokens(new, Sizing())
    tokens(old, sizing)
    for _ in range(60):
        sizing.learn(
            old, MODEL, facts, Estimate(16_000, True, True, 16_000.0, "count", 16_000), reported=4_000, cached=0
        )
    taught = tokens(old, sizing)
    assert taught < tokens(old, Sizing()) / 2
    assert tokens(new, sizing) == untaught
    sizing.learn(old, MODEL, facts, SEEN, reported=1_000, cached=0)
    assert tokens(new, sizing) == untaught
    assert tokens(sized_by({"bytes": True}, tmp_path), sizing) <= taught
