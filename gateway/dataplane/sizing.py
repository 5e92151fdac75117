"""How many tokens a prompt has, per model: the tokenizers of the policy and what the runtimes' usage says of them.

Owns the loaded tokenizers and the online corrections of this worker. ``prompt_tokens`` may be called from the thread
that reads long bodies; ``learn`` belongs to the loop. A correction that is read while it moves is a slightly older one.
"""

from typing import Final

from gateway.core.tokens import Correction, Estimate, Tokenizer, bounds_of, plan
from gateway.model.facts import Facts, Reading
from gateway.model.table import Table
from gateway.policy.tokenizer_files import load_tokenizer

_CORRECTIONS_MOST: Final = 4_096
UNKNOWN: Final = ("bytes", "")  # for a model that the table does not know: its request is refused a moment later


class Sizes:
    """What sizing needs of one generation."""

    __slots__ = ("bounds", "default_output", "specs", "tokenizers")

    def __init__(self, table: Table) -> None:
        self.bounds = bounds_of(table)
        self.default_output = table.classifier.default_output_tokens
        self.specs = {name: model.tokenizer for name, model in table.models.items()}
        self.tokenizers: dict[str, Tokenizer] = {
            name: load_tokenizer(model.tokenizer) for name, model in table.models.items()
        }


class Sizing:
    """Corrections per model and tokenizer; they outlive generations, because tokenizers do.

    What was learnt of one tokenizer says nothing of another: applied to it, prompts would look a few times too short
    or too long after a reload, on the wrong side of length constraints.
    """

    __slots__ = ("_corrections", "_unknown")

    def __init__(self) -> None:
        self._corrections: dict[tuple[str, Tokenizer], Correction] = {}
        self._unknown = load_tokenizer(UNKNOWN)

    def estimate(self, sizes: Sizes, model: str, reading: Reading) -> Estimate:
        """Prompt tokens, as exact as the policy's bounds need."""
        return plan(
            reading.facts,
            reading.texts,
            sizes.bounds,
            sizes.tokenizers.get(model, self._unknown),
            self._correction(model, sizes),
            default_output_tokens=sizes.default_output,
        )

    def learn(self, sizes: Sizes, model: str, facts: Facts, estimate: Estimate, *, reported: int, cached: int) -> None:
        """A runtime reported what a prompt of this model really had; ``sizes`` are those that it was estimated by.

        Only text teaches: what a template makes of tools (some leave them out), and what images and audio come to, says
        nothing about the tokenizer, and must not make the next long text look short.
        """
        if facts.tools or facts.images or facts.audio:
            return
        tokenizer = sizes.tokenizers.get(model)
        correction = self._corrections.get((model, tokenizer)) if tokenizer is not None else None
        if correction is not None:
            correction.observe(estimate, reported, cached)

    def _correction(self, model: str, sizes: Sizes) -> Correction:
        tokenizer = sizes.tokenizers.get(model)
        if tokenizer is None:
            return Correction.fresh(UNKNOWN)
        correction = self._corrections.get((model, tokenizer))
        if correction is None:
            if len(self._corrections) >= _CORRECTIONS_MOST:
                self._corrections.clear()  # tokenizer files that are replaced for ever
            correction = self._corrections[model, tokenizer] = Correction.fresh(sizes.specs[model])
        return correction
