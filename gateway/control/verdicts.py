"""What the checks found, counted: per bucket and pool, by check and verdict, and by failure class."""

from collections.abc import Sequence

from gateway.control.scoring import Scored
from gateway.control.series import Counter
from gateway.core.quality import Verdict


class Verdicts:
    """Counters over scored outcomes."""

    def __init__(self) -> None:
        self.answers = Counter(
            "quantgate_answers_checked_total",
            "Answers that were checked, by whether anything failed.",
            ("bucket", "pool", "verdict"),
        )
        self.checks = Counter(
            "quantgate_checks_total",
            "Verdicts of single checks (pass, fail, skip), where the check applied.",
            ("bucket", "pool", "check", "verdict"),
            most=20_000,  # 200 buckets with two pools and the checks that apply to them
        )
        self.failures = Counter(
            "quantgate_answer_failures_total",
            "Answers with at least one failed check of a class.",
            ("bucket", "pool", "class"),
            most=4_000,
        )

    def take_scored(self, batch: Sequence[Scored]) -> None:
        """Count what was found; unchecked outcomes count nowhere here."""
        for scored in batch:
            inspection = scored.inspection
            if inspection is None:
                continue
            bucket, pool = scored.outcome.kind.bucket, scored.outcome.kind.pool
            self.answers.add((bucket, pool, "pass" if inspection.ok else "fail"))
            for failure in inspection.failures:
                self.failures.add((bucket, pool, failure.value))
            for finding in inspection.findings:
                if finding.verdict is not Verdict.NOT_APPLICABLE:
                    self.checks.add((bucket, pool, finding.check.value, finding.verdict.value))
