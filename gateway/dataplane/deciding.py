"""From profile to decision: the table's answer, the rollout's arm, what the conversation must keep, the last resort.

Everything here only reorders or strikes pools that ``core.decide`` gave. Nothing left = the request is
refused with the names of what stands against it. Called by ``pipeline`` once per request.
"""

from collections.abc import Mapping
from typing import Final

from gateway.core.arms import ROLLED_BACK, assign, share_of
from gateway.core.decide import decide, settle
from gateway.dataplane.conversations import Conversations
from gateway.dataplane.exchange import Exchange
from gateway.errors import ApiError
from gateway.model.decision import Decision, Exclusion
from gateway.model.enums import COUNTING, ToolUse
from gateway.model.facts import Profile

TOOL_LOOP: Final = "tool-loop-keeps-precision"
TOOL_LOOP_REASON: Final = "the conversation is in a tool loop that began on a finer precision"


class Deciding:
    """``shares``: latched rollout shares by rollout identity and bucket, in basis points, as control last said."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations
        self.shares: Mapping[str, Mapping[str, int]] = {}

    def decide(self, exchange: Exchange) -> None:
        """Set the exchange's decision. Raises ``ApiError`` if no pool may serve it."""
        table, profile = exchange.generation.table, exchange.profile
        assert profile is not None  # noqa: S101 - classified before
        decision = decide(table, profile)
        if decision.exclusions:
            exchange.decision = decision  # on record also where the prompt is too long
            decision = settle(table, profile, decision)
        if decision.rollout is not None:
            decision = self._assign(exchange, profile, decision, decision.rollout)
            if exchange.api in COUNTING:  # it goes the way of the others, and says nothing of how the pool computes
                decision = decision.apart()
        if exchange.facts.tool_use is ToolUse.LOOP and decision.pools:
            decision = self._keep_precision(exchange, profile.model, decision)
        exchange.decision = decision
        if not decision.pools:
            raise _no_pool(decision)

    def _assign(self, exchange: Exchange, profile: Profile, decision: Decision, rollout: str) -> Decision:
        """The conversation's arm, by the bucket's latched share; an unknown share counts as none."""
        key = exchange.conversation or exchange.request_id.encode()
        plan = exchange.generation.rollouts[rollout]
        share = share_of(self.shares, plan.identity, profile.bucket)
        if share == ROLLED_BACK and exchange.generation.table.settings.response_headers:
            # On answers and refusals alike: what is slower or refused now is so because of this.
            exchange.extra_fields += b"x-quantgate-rolled-back: %b\r\n" % plan.candidate.encode()
        return assign(plan, decision, key, share)

    def _keep_precision(self, exchange: Exchange, model: str, decision: Decision) -> Decision:
        """A conversation in a tool loop changes precision only upwards: coarser pools are struck from the list."""
        memory = self._conversations.get(exchange.conversation, model, exchange.wall_at)
        if memory is None:
            return decision
        ranks = exchange.generation.ranks
        coarser = [name for name in decision.pools if ranks[name] < memory.rank]
        if not coarser:
            return decision
        return decision.changed(
            pools=tuple(name for name in decision.pools if ranks[name] >= memory.rank),
            excluded=tuple(Exclusion(name, TOOL_LOOP, TOOL_LOOP_REASON) for name in coarser),
            constraints=(TOOL_LOOP,),
        )


def _no_pool(decision: Decision) -> ApiError:
    named = list(dict.fromkeys(f"{exclusion.by} ({exclusion.reason})" for exclusion in decision.exclusions))
    why = "; ".join(named[:4]) if named else "no route of the policy matches it"
    message = f"No pool may serve this request: {why}."
    if any(exclusion.by == TOOL_LOOP for exclusion in decision.exclusions):
        message += " A new conversation may begin on what is permitted now."
    return ApiError(503, "no_eligible_pool", message, headers=(("Retry-After", "30"),))
