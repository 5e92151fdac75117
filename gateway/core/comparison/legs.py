"""Three legs of one request become one number for the judge; a missing leg is a value and never left out.

Owns which leg counts as what in a triple; the table of losses itself is `evidence.pairs` (statistics 4.1). Must not
compare (that is `agree`) and must not decide (that is evidence).

Why the noise leg: two runs of one baseline differ too. With b the answer the client got, b' a second run and c the
candidate's answer, y = agreement(b, b') - agreement(b, c). If the candidate is the baseline, b' and c are
exchangeable, so y has mean 0 whatever the agreement measures, failures included, as long as nothing is left out.
"""

from enum import StrEnum

from gateway.core.comparison.parts import Agreement, Kind, Unscored, Verdict
from gateway.core.evidence.pairs import Leg as ScoredLeg
from gateway.core.evidence.pairs import Missing, PairLoss, three_leg_loss


class LegState(StrEnum):
    """A leg that gave no answer to compare."""

    FAILED = "failed"  # error, timeout, broken off, empty, unreadable: counts as 0
    MISSING = "missing"  # shed, dropped, not captured: unknown
    NOT_ASKED = "not_asked"  # a noise leg outside its share of pairs: no pair at all


def loss_of_triple(noise: Agreement | LegState, candidate: Agreement | LegState) -> PairLoss | None:
    """Excess difference of one triple: ``noise`` = agreement(b, b'), ``candidate`` = agreement(b, c); > 0 is worse.

    | b | b' | c | trip | promotion |
    |---|---|---|---|---|
    | answered | answered | answered | A(b,b') - A(b,c) | same |
    | answered | answered | failed | A(b,b') | same |
    | answered | failed | answered | -A(b,c) | same |
    | answered | failed | failed | 0 | same |
    | failed | any | any | 0 (both_failed if all three did) | same |
    | any leg missing or unscored | | | none | +1 |
    | b' not asked | | | no loss at all | |

    A failed leg agrees with nothing, not even with another failure. Where b itself failed nothing can be said about
    c's quality, so y is 0 (the error guards count the failure); taking b' as reference then would favour the candidate.
    """
    if candidate is LegState.NOT_ASKED or noise is LegState.NOT_ASKED:
        return None
    return three_leg_loss(_scored(noise), _scored(candidate))


def missing(kind: Kind) -> Agreement:
    """The agreement of a pair with a leg that never came."""
    return Agreement(Verdict.UNSCORED, kind, unscored=Unscored.MISSING_LEG)


def _scored(agreement: Agreement | LegState) -> ScoredLeg:
    if isinstance(agreement, LegState):
        return Missing.FAILED if agreement is LegState.FAILED else Missing.UNSCORED
    if agreement.verdict is Verdict.BOTH_FAILED:
        return Missing.FAILED
    return Missing.UNSCORED if agreement.score is None else agreement.score
