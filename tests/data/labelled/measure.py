"""Hold the checks against the labelled set: precision, recall and false-positive rate of each, and what disagrees.

``python measure.py`` prints the table and every disagreement; ``--write`` puts the table into `docs/checks.md`. A case
counts for a check unless its label is ``unsure``; it is positive when the label says that the check must fail. Skipping
counts as not failing.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

from gateway.core.quality import CLASS_OF, STRUCTURAL, Check, Inspection, Verdict, inspect

HERE = Path(__file__).parent
DEVELOPMENT = ("synthetic.jsonl", "models.jsonl")
HELD_OUT = ("held_out_hand.jsonl", "held_out_models.jsonl")
PAGE = HERE.parents[2] / "docs" / "checks.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


class Row(NamedTuple):
    """Counts of one check over the cases that have a label for it."""

    check: Check
    true_positives: int
    false_positives: int
    false_negatives: int
    negatives: int

    @property
    def precision(self) -> float:
        """Share of alarms that are right; 1 without any alarm."""
        alarms = self.true_positives + self.false_positives
        return self.true_positives / alarms if alarms else 1.0

    @property
    def recall(self) -> float:
        """Share of faults that are found; 1 without any fault."""
        faults = self.true_positives + self.false_negatives
        return self.true_positives / faults if faults else 1.0

    @property
    def false_positive_bound(self) -> float:
        """95 % upper bound of the false-positive rate (Wilson, one-sided): what the number of sound cases can show."""
        n, z = self.negatives, 1.645
        if not n:
            return 1.0
        rate = self.false_positives / n
        spread = z * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
        return min((rate + z * z / (2 * n) + spread) / (1 + z * z / n), 1.0)

    @property
    def false_positive_rate(self) -> float:
        """Share of cases without the fault that raise an alarm."""
        return self.false_positives / self.negatives if self.negatives else 0.0


def read_cases(*names: str) -> list[dict[str, Any]]:
    """The cases of the named files, or of the whole set."""
    files = names or (*DEVELOPMENT, *HELD_OUT)
    return [json.loads(line) for name in files for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def inspect_case(item: dict[str, Any]) -> Inspection:
    """Run the checks as control does: bytes in, inspection out."""
    answer = item["answer"]
    raw = answer.encode("utf-8", "surrogatepass") if isinstance(answer, str) else json.dumps(answer).encode()
    return inspect(json.dumps(item["request"]).encode(), raw)


def measure(items: list[dict[str, Any]]) -> tuple[list[Row], list[str]]:
    """One row per check, and a line for each disagreement with a label."""
    counts = {check: [0, 0, 0, 0] for check in Check}
    wrong: list[str] = []
    for item in items:
        found = inspect_case(item)
        labels = item["labels"]
        for check in Check:
            if check.value in labels["unsure"]:
                continue
            verdict = found.verdict(check)
            positive, alarm = check.value in labels["fail"], verdict == Verdict.FAIL
            tally = counts[check]
            tally[0] += positive and alarm
            tally[1] += alarm and not positive
            tally[2] += positive and not alarm
            tally[3] += not positive
            detail = next((f.detail for f in found.findings if f.check == check and f.verdict == verdict), "")
            if positive != alarm:
                wrong.append(
                    f"{item['id']}: {check.value} is {verdict.value} ({detail}), "
                    f"must {'fail' if positive else 'not fail'}"
                )
            elif check.value in labels["pass"] and verdict != Verdict.PASS:
                wrong.append(f"{item['id']}: {check.value} is {verdict.value} ({detail}), must pass")
    return [Row(check, *counts[check]) for check in Check], wrong


def table(rows: list[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [
        "| check | counts as | kind | faulty cases | sound cases | precision | recall | false-positive rate "
        "| at most (95 %) |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        kind = "structural" if row.check in STRUCTURAL else "weighed"
        faults = row.true_positives + row.false_negatives
        numbers = (
            f"{row.precision:.3f} | {row.recall:.3f} | {row.false_positive_rate:.4f} | {row.false_positive_bound:.4f}"
        )
        lines.append(
            f"| `{row.check.value}` | `{CLASS_OF[row.check].value}` | {kind} | {faults} | {row.negatives} | {numbers} |"
        )
    return "\n".join(lines)


def page_section() -> str:
    """What stands between the two marks of `docs/checks.md`."""
    tuned, held_out = read_cases(*DEVELOPMENT), read_cases(*HELD_OUT)
    parts = []
    for title, items in (("All cases the checks were developed against", tuned), ("Held out", held_out)):
        languages = {lang: sum(1 for item in items if item["lang"] == lang) for lang in ("en", "zh")}
        real = sum(1 for item in items if item["origin"] != "hand")
        counted = f"{len(items)} answers: {languages['en']} English, {languages['zh']} Chinese; {real} by real models."
        parts.append(f"### {title}\n\n{counted}\n\n{table(measure(items)[0])}\n")
    return "\n".join(parts)


def main() -> int:
    """Print or write."""
    names = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    if "--write" in sys.argv:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before}{BEGIN}\n{page_section()}{END}{after}", encoding="utf-8")
        return 0
    rows, wrong = measure(read_cases(*names))
    sys.stdout.write(table(rows) + "\n\n" + "\n".join(wrong) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
