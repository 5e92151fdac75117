"""Guards that can never get what they go by, and rollbacks that could lead nowhere: warnings before anybody waits.

No data is never a pass, so a guard without data holds its rollout for ever; that is better said when the policy is
read. Computed over the same finite space as ``reach``, which calls this.
"""

from collections.abc import Iterator, Sequence

from gateway.core.arms import WHOLE_BP
from gateway.core.quality.finding import CLASS_OF, Check, FailureClass
from gateway.errors import PolicyError
from gateway.model.enums import GENERATING, Structured, ToolUse
from gateway.model.precision import rank
from gateway.model.proving import Guard, Rollout, Shadow
from gateway.model.table import Table
from gateway.policy.cells import Cell, compiled
from gateway.policy.schema import Policy
from gateway.policy.schema.proving import LATENCIES, PAIRS
from gateway.policy.space import Region, Space
from gateway.policy.tree import Path, Tree
from gateway.policy.words import describe

_STREAMED = frozenset({"ttft", "tpot", "token_gap"})
_TOOLS_CHECKS = frozenset(check for check, kind in CLASS_OF.items() if kind is FailureClass.TOOL_FAILURE)
_FORM_CHECKS = frozenset(check for check, kind in CLASS_OF.items() if kind is FailureClass.FORMAT_ERROR)


def check_feeding(policy: Policy, table: Table, tree: Tree, space: Space, cells: Sequence[Cell]) -> list[PolicyError]:
    """Warnings about guards without data and rollbacks without room, each at the place that must change."""
    found: list[PolicyError] = []
    for index, rollout in enumerate(table.rollouts):
        matches = compiled(rollout.matches)
        mine = [cell for cell in cells if rollout.candidate in cell.pools]
        served: Region = [box for cell in mine for box in space.within(list(cell.region), matches)]
        if not served:
            continue  # ``reach`` has said that it never serves
        looked = _Looked(policy, table, space, rollout, served)
        path: Path = ("rollouts", index)
        for place, name in enumerate(policy.rollouts[index].guards):
            for message, mend in looked.hungry(table.guards[name]):
                found.append(tree.place((*path, "guards", place)).finding(message, mend, "warning"))
        for key, message, mend in looked.rollback(mine):
            found.append(tree.place((*path, key)).finding(message, mend, "warning"))
    return found


def unscored(table: Table, *pools: str) -> str:
    """Why no answer of these pools is scored by likelihood together; empty if they are (``likelihood_caution``)."""
    for pool in (table.pools[name] for name in pools):
        if pool.runtime == "vllm" and pool.adapters:
            return f"{pool.name!r} serves LoRA adapters on vLLM, which can die of being asked for scores"
    return ""


class _Looked:
    """One rollout, and the requests that its candidate may serve."""

    def __init__(self, policy: Policy, table: Table, space: Space, rollout: Rollout, served: Region) -> None:
        self._policy = policy
        self._table = table
        self._space = space
        self._rollout = rollout
        self._served = served

    def hungry(self, guard: Guard) -> Iterator[tuple[str, str]]:
        """What a guard lacks, with the mend."""
        if guard.metric in PAIRS:
            yield from self._without_pairs(guard)
        elif guard.metric in LATENCIES:
            yield from self._without_times(guard)
        elif guard.metric == "feedback_rate":
            yield from self._without_clients(guard)
        elif guard.metric != "error_rate":
            yield from self._without_answers(guard)
        if guard.margin is not None or guard.ratio is not None or guard.or_ratio is not None:
            yield from self._without_baseline(guard)

    def _without_pairs(self, guard: Guard) -> Iterator[tuple[str, str]]:
        rollout = self._rollout
        never = unscored(self._table, rollout.candidate, rollout.baseline)
        if guard.metric == "likelihood_gap" and never:
            yield (
                f"the guard {guard.name!r} needs pairs that are scored by likelihood, and none is: {never}",
                "set adapters: [] of pools that serve none, or use metric: agreement",
            )
        if any(stage.kind == "shadow" for stage in rollout.stages):
            return  # the stage mirrors by itself, with all that its guards need
        rules = [rule for rule in self._table.shadows if self._mirrors(rule)]
        needs = f"the guard {guard.name!r} needs pairs"
        if not rules:
            yield (
                f"{needs}, but nothing mirrors requests of these buckets from {rollout.baseline!r} to "
                f"{rollout.candidate!r}",
                "add a shadow stage or a shadow rule; without pairs it is never promoted",
            )
        elif guard.metric == "agreement" and not any(rule.noise for rule in rules):
            yield (
                f"{needs} with a second run of the baseline, but noise_leg is 0 in {_named(rules)}",
                "give it a noise_leg; without one nobody knows what is noise, and the pair does not count",
            )
        elif guard.metric == "likelihood_gap" and not any(rule.likelihood for rule in rules):
            yield (
                f"{needs} that are scored by likelihood, but likelihood is 0 in {_named(rules)}",
                "give it a share, such as likelihood: 100%",
            )

    def _mirrors(self, rule: Shadow) -> bool:
        rollout = self._rollout
        same = (rule.candidate, rule.baseline) == (rollout.candidate, rollout.baseline)
        return same and bool(self._space.within(self._served, compiled(rule.matches)))

    def _without_times(self, guard: Guard) -> Iterator[tuple[str, str]]:
        if guard.metric in _STREAMED and not any(self._space.present(self._served, "stream")):
            yield f"the guard {guard.name!r} goes by streams, and these buckets have none", "use metric: total"

    def _without_clients(self, guard: Guard) -> Iterator[tuple[str, str]]:
        if all(stage.kind == "shadow" for stage in self._rollout.stages):
            message = f"the guard {guard.name!r} needs clients' words, and mirrored answers are never shown to them"
            yield message, "add a stage with a weight, or leave the guard out"

    def _without_answers(self, guard: Guard) -> Iterator[tuple[str, str]]:
        """Guards that go by what the checks find in answers."""
        message = f"the guard {guard.name!r} gets nothing from these buckets: "
        if not GENERATING & set(self._space.present(self._served, "api")):
            yield message + "their answers hold no generated text", "leave it out"
            return
        tools = any(use is not ToolUse.NONE for use, _ in self._space.present(self._served, "tools"))
        formed = any(form is not Structured.NONE for form in self._space.present(self._served, "structured"))
        check = Check(guard.check) if guard.check is not None else None
        if (guard.metric == "tool_failure_rate" or check in _TOOLS_CHECKS) and not tools:
            yield message + "their requests have no tools", "leave it out, or choose buckets with tools"
        elif (guard.metric == "format_error_rate" or check in _FORM_CHECKS) and not formed:
            yield message + "their requests ask for no format", "leave it out, or choose structured buckets"
        elif not self._checked(guard, tools=tools, formed=formed):
            mend = "raise the share under evidence.check"
            yield message + "none of the answers that it looks at are checked", mend

    def _checked(self, guard: Guard, *, tools: bool, formed: bool) -> bool:
        """Whether any answers are looked at that the guard could say something of."""
        shares = self._policy.evidence.check
        plain = guard.metric not in ("tool_failure_rate", "format_error_rate")
        return bool((tools and shares.tools) or (formed and shares.structured) or (plain and shares.other))

    def _without_baseline(self, guard: Guard) -> Iterator[tuple[str, str]]:
        rollout = self._rollout
        if guard.metric in PAIRS or rollout.control_bp or rollout.stages[-1].share_bp < WHOLE_BP:
            return
        if rollout.stages[-1].kind == "weight" and not (guard.limit is not None and guard.or_ratio is not None):
            message = f"at 100 % the guard {guard.name!r} has no baseline beside it: control is 0"
            yield message, "leave control at a few percent: the last stage is never passed without"

    # after a rollback

    def rollback(self, cells: Sequence[Cell]) -> Iterator[tuple[str, str, str]]:
        """What a rollback of the candidate would run into: key, message, mend."""
        rollout, pools = self._rollout, self._table.pools
        stuck = self._stuck_loops(cells)
        if stuck:
            where = describe(self._space, stuck, ("served",))
            message = (
                f"{rollout.candidate!r} is finer than every pool that remains without it: if it is rolled back, "
                f"tool loops that it began are refused, {where}"
            )
            yield "candidate", message, "name a further pool of its precision in the route"
        if pools[rollout.baseline].limits.inflight is None:
            message = (
                f"nothing bounds what comes back to {rollout.baseline!r} if {rollout.candidate!r} is rolled back: "
                "it has no limits.inflight"
            )
            yield "baseline", message, f"give pools.{rollout.baseline} limits: {{inflight: …}}"
        tiers = {tenant.tier for tenant in self._table.tenants.values()}
        if len(tiers) > 1 and not self._table.settings.queue_tiers:
            message = f"tenants have tiers ({', '.join(sorted(tiers))}), but gateway.queue.tiers ranks none"
            yield "baseline", message, "rank them: what the baseline cannot take back is refused by tier"

    def _stuck_loops(self, cells: Sequence[Cell]) -> Region:
        """Requests in a tool loop that, begun on the candidate, no other pool may go on with."""
        rollout, pools = self._rollout, self._table.pools
        mine, matches = rank(pools[rollout.candidate].precision), compiled(rollout.matches)
        found: Region = []
        for cell in cells:
            others = [name for name in cell.pools if name != rollout.candidate]
            if any(rank(pools[name].precision) >= mine for name in others):
                continue
            region = self._space.within(list(cell.region), matches)
            for tools in self._space.present(region, "tools"):
                if tools[0] is ToolUse.LOOP:
                    found += self._space.pinned(region, "tools", tools)
        return found


def _named(rules: Sequence[Shadow]) -> str:
    return ", ".join(repr(rule.name) for rule in rules)
