"""What can never happen, or never happen well: routes behind others, constraints no pool can meet, rollouts of nothing.

Computed exactly over the finite space of the policy (``space``). A policy too fine for that is let through with a
warning: the data plane decides every request on its own and refuses where nothing is eligible. Called by ``load``.
"""

from gateway.core.decide import ADAPTER, CONTEXT_WINDOW
from gateway.errors import PolicyError
from gateway.model.proving import Rollout, Shadow
from gateway.model.table import Table
from gateway.policy.analysis import bucket_count
from gateway.policy.cells import Cell, Reached, carries, cells_of, compiled, reached_routes, space_of
from gateway.policy.conditions import Condition
from gateway.policy.feeding import check_feeding, unscored
from gateway.policy.schema import Policy
from gateway.policy.space import Region, Space, TooFineError
from gateway.policy.tree import Path, Tree
from gateway.policy.words import describe


def check_reach(policy: Policy, table: Table, tree: Tree) -> list[PolicyError]:
    """Errors and warnings about what the rules can and cannot do together. ``table`` is the compiled ``policy``."""
    try:
        space = space_of(table)
    except TooFineError:
        return [_too_fine(tree)]
    checker = _Checker(policy, table, tree, space)
    try:
        checker.routes()
        checker.constraints()
        checker.refused()
        checker.rollouts()
        checker.shadows()
        checker.feeding()
        checker.buckets()
    except TooFineError:
        checker.findings.append(_too_fine(tree))
    return checker.findings


def _too_fine(tree: Tree) -> PolicyError:
    message = "the rules cut requests into too many kinds to check what each of them can reach"
    return tree.place(("routes",)).finding(message, "fewer, broader conditions", "warning")


class _Checker:
    """One look at the space of a policy; ``findings`` fill as it goes."""

    def __init__(self, policy: Policy, table: Table, tree: Tree, space: Space) -> None:
        self.findings: list[PolicyError] = []
        self._policy = policy
        self._table = table
        self._tree = tree
        self._space = space
        self._reached: list[Reached] = []
        self._cells: list[Cell] = []

    def _say(self, path: Path, message: str, mend: str = "", severity: str = "error") -> None:
        self.findings.append(self._tree.place(path).finding(message, mend, severity))

    def _never(self, path: Path, rule: str, condition: Condition) -> None:
        callers = self._space.atoms["caller"]
        tests = [test for dimension, test in condition.tests if dimension == "caller"]
        if not any(all(test(caller) for test in tests) for caller in callers):
            mend = f"these may call: {', '.join(f'{name} ({tier})' for name, tier in callers[:12])}"
            self._say(path, f"{rule} can never match: no tenant that may call is meant by it", mend)
        else:
            self._say(path, f"{rule} can never match: its conditions exclude each other", "drop one of them")

    def routes(self) -> None:
        """Every route is reached by something, and every request by a route."""
        self._reached, rest = reached_routes(self._table, self._space)
        for index, reached in enumerate(self._reached):
            if reached.region:
                continue
            name = reached.route.name
            if not reached.alone:
                self._never(("routes", index), f"route {name!r}", compiled(reached.route.matches))
                continue
            takers = [
                earlier.route.name
                for earlier in self._reached[:index]
                if self._space.within(reached.alone, compiled(earlier.route.matches))
            ]
            message = f"route {name!r} is never reached: {', '.join(takers)} before it take every request it matches"
            self._say(("routes", index), message, "move it up, or remove it")
        if rest:
            message = f"no route matches {describe(self._space, rest)}; such requests are refused"
            self._say(("routes",), message, "end with a route without `when`", "warning")

    def constraints(self) -> None:
        """Every constraint can match, and can be met wherever it matches."""
        space = self._space
        reachable: Region = [box for reached in self._reached for box in reached.region]
        for index, constraint in enumerate(self._table.constraints):
            path: Path = ("constraints", index)
            holds = compiled(constraint.matches)
            if not space.within(space.everything, holds):
                self._never(path, f"constraint {constraint.name!r}", holds)
                continue
            matched = space.within(reachable, holds)
            if not matched:
                message = f"constraint {constraint.name!r} never fires: no request that reaches a route matches it"
                self._say(path, message, "", "warning")
            if self._policy.constraints[index].refuse:
                continue
            for model, adapter in space.present(matched, "served"):
                pools = [pool for pool in self._table.pools.values() if carries(self._table, pool, model, adapter)]
                if any(constraint.permits(pool) for pool in pools):
                    continue
                who = model if adapter is None else f"{model} with adapter {adapter}"
                where = describe(space, space.pinned(matched, "served", (model, adapter)), ("served",))
                message = (
                    f"constraint {constraint.name!r} cannot be met: no pool of {who} satisfies {constraint.requires}, "
                    f"so it would refuse {where}"
                )
                mend = (
                    "add such a pool, limit the constraint by `when: {model: …}`, or say refuse: true if this is meant"
                )
                severity = "error" if constraint.unless_measured is None else "warning"
                self._say(path, message, mend, severity)

    def refused(self) -> None:
        """Where constraints that can be met one by one leave nothing together."""
        self._cells = cells_of(self._table, self._space)
        meant = {constraint.name for constraint in self._policy.constraints if constraint.refuse}
        places = {route.name: index for index, route in enumerate(self._table.routes)}
        lost: dict[tuple[str, str], tuple[Region, dict[str, None]]] = {}
        for cell in self._cells:
            by_size = CONTEXT_WINDOW in cell.by and set(cell.by) <= {ADAPTER, CONTEXT_WINDOW}
            if cell.pools or cell.rule not in places or meant & set(cell.by) or by_size:
                continue
            who = cell.model if cell.adapter is None else f"{cell.model}:{cell.adapter}"
            region, by = lost.setdefault((cell.rule, who), ([], {}))
            region += cell.region
            by |= dict.fromkeys(cell.by)
        for (rule, who), (region, by) in lost.items():
            where = describe(self._space, region, ("served",))
            message = f"route {rule!r} has no pool left for {who}, {where} (ruled out by {', '.join(by)})"
            mend = "such requests are refused; name a further pool in the route"
            self._say(("routes", places[rule], "pools"), message, mend, "warning")

    def rollouts(self) -> None:
        """Every rollout speaks of buckets that exist and in which both of its pools can serve."""
        space = self._space
        taken: list[tuple[str, Region]] = []
        for index, rollout in enumerate(self._table.rollouts):
            path: Path = ("rollouts", index)
            region = space.within(space.everything, compiled(rollout.matches))
            if not region:
                self._say((*path, "buckets"), f"rollout {rollout.name!r} names buckets that can never exist")
                continue
            self._both_serve(path, rollout)
            for other, theirs in taken:
                common = space.within(theirs, compiled(rollout.matches))
                if common:
                    message = f"rollouts {other!r} and {rollout.name!r} share buckets: {describe(space, common)}"
                    self._say((*path, "buckets"), message, "a bucket takes part in one rollout at a time")
            taken.append((rollout.name, region))

    def _both_serve(self, path: Path, rollout: Rollout) -> None:
        inside = [cell for cell in self._cells if self._space.within(list(cell.region), compiled(rollout.matches))]
        for role, pool in (("candidate", rollout.candidate), ("baseline", rollout.baseline)):
            if any(pool in cell.pools for cell in inside):
                continue
            routes = {route.name: route.pools for route in self._table.routes}
            named = any(pool in routes.get(cell.rule, ()) for cell in inside)
            why = f"ruled out by {', '.join(self._ruled_out(pool, inside))}"
            if not named:
                why = f"no route that they reach names it ({', '.join(sorted({cell.rule for cell in inside}))})"
            self._say((*path, role), f"{role} {pool!r} never serves the buckets of rollout {rollout.name!r}: {why}")
            return
        if not any(rollout.candidate in cell.pools and rollout.baseline in cell.pools for cell in inside):
            message = f"candidate and baseline of rollout {rollout.name!r} are never eligible for the same request"
            self._say((*path, "candidate"), message)

    def _ruled_out(self, pool: str, cells: list[Cell]) -> list[str]:
        """What keeps ``pool`` from serving these cells, as far as it is named in them."""
        permitted = {item.name for item in self._table.constraints if item.permits(self._table.pools[pool])}
        return sorted({by for cell in cells for by in cell.by if by not in permitted})

    def shadows(self) -> None:
        """Every shadow rule mirrors something."""
        for index, shadow in enumerate(self._table.shadows):
            if shadow.name.startswith("rollout:"):
                continue  # it has the rollout's own buckets, which are looked at there
            if not self._space.within(self._space.everything, compiled(shadow.matches)):
                self._never(("shadow", index), f"shadow rule {shadow.name!r}", compiled(shadow.matches))
                continue
            found = self._unmirrored(shadow)
            if found is not None:
                self._say(
                    ("shadow", index), f"shadow rule {shadow.name!r} mirrors nothing: {found[0]}", found[1], "warning"
                )
            asked = unscored(self._table, shadow.candidate, shadow.baseline) if shadow.likelihood else ""
            if asked:
                mend = "leave likelihood out, or set adapters: [] of pools that serve none"
                message = f"shadow rule {shadow.name!r} has no pair scored by likelihood: {asked}"
                self._say(("shadow", index), message, mend, "warning")

    def _unmirrored(self, shadow: Shadow) -> tuple[str, str] | None:
        """Why no request of a shadow rule is ever mirrored, with the mend; None if some are."""
        firsts: set[str] = set()
        for cell in self._cells:
            region = self._copied(shadow, cell) if cell.pools else []
            if region:
                firsts |= {cell.pools[0]} | {
                    rollout.baseline
                    for rollout in self._table.rollouts
                    if {rollout.candidate, rollout.baseline} <= set(cell.pools)
                    and self._space.within(region, compiled(rollout.matches))
                }
        if not firsts:
            return (
                f"constraints keep all of its requests from {shadow.candidate!r}",
                "choose other requests or another candidate",
            )
        if shadow.baseline in firsts:
            return None
        went = " or ".join(repr(pool) for pool in sorted(firsts))
        others = [f"baseline: {pool}" for pool in sorted(firsts - {shadow.candidate})]
        return (
            f"its requests go to {went} first, and only what its baseline {shadow.baseline!r} answers is compared",
            " or ".join([*others, f"requests that {shadow.baseline!r} gets"]),
        )

    def _copied(self, shadow: Shadow, cell: Cell) -> Region:
        """Those of a cell that the candidate may get a copy of."""
        candidate = self._table.pools[shadow.candidate]
        region = self._space.within(list(cell.region), compiled(shadow.matches))
        for item in self._table.constraints:
            if region and item.unless_measured is None and not item.permits(candidate):
                region = self._space.without(region, compiled(item.matches))
        return region if carries(self._table, candidate, cell.model, cell.adapter) else []

    def buckets(self) -> None:
        """Every bucket of a rollout has a label of its own; else each worker knows apart those that it saw first."""
        most = self._table.classifier.bucket_most
        if self._table.rollouts and (count := bucket_count(self._table, self._space)) > most:
            message = f"{count} buckets are possible and {most} are kept apart: the rest is judged as one, 'other'"
            mend = f"most: {count}, or fewer fields, so that a rollout takes back what is bad and nothing else"
            self._say(("classify", "buckets", "most"), message, mend, "warning")

    def feeding(self) -> None:
        """Every guard of a rollout can get data, and a rollback leads somewhere."""
        self.findings += check_feeding(self._policy, self._table, self._tree, self._space, self._cells)
