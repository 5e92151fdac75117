"""Two answers to one request, compared: pure, per task, bounded, never raising.

The map: `parts` holds the closed words, weights and caps; `reading` works out what is needed of one answer (`text`,
`structure`, `marks`, `language`, and the quality checks for refusals and degenerate text); `calls` compares tool calls;
`agree` makes one score of it; `legs` turns three legs into the judge's value; `explain` says in words what differs.
`scoring` (with `spelling`) asks a runtime for teacher-forced scores without doing I/O, `likelihood` compares them.
`opinions` is the door for optional plug-ins.

Agreement measures difference, not quality: which of two answers is better it cannot say. With the noise leg it says
whether the candidate differs from the baseline more than the baseline from itself.
"""

from gateway.core.comparison.agree import Leg, Triple, compare, compare_legs, excess, kind_of
from gateway.core.comparison.legs import LegState, loss_of_triple
from gateway.core.comparison.likelihood import Gap, TokenScores, likelihood_gap
from gateway.core.comparison.opinions import Opinion
from gateway.core.comparison.parts import CAPS, WEIGHTS, Agreement, Kind, Part, Unscored, Verdict
from gateway.core.comparison.scoring import (
    Call,
    Reply,
    Scoring,
    ScoringError,
    ScoringProblem,
    score_answer,
    scoring_of,
)

__all__ = [
    "CAPS",
    "WEIGHTS",
    "Agreement",
    "Call",
    "Gap",
    "Kind",
    "Leg",
    "LegState",
    "Opinion",
    "Part",
    "Reply",
    "Scoring",
    "ScoringError",
    "ScoringProblem",
    "TokenScores",
    "Triple",
    "Unscored",
    "Verdict",
    "compare",
    "compare_legs",
    "excess",
    "kind_of",
    "likelihood_gap",
    "loss_of_triple",
    "score_answer",
    "scoring_of",
]
