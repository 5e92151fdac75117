"""What names in a policy must mean.

Every pool, model, adapter, guard, tenant, task and length that a rule speaks of exists.

Each finding stands where the name is written and suggests the nearest one. Called by ``load``.
"""

import re
from collections.abc import Iterable
from pathlib import Path as FilePath

from gateway.core.quality.finding import Check
from gateway.errors import PolicyError
from gateway.policy.names import claims, runs_at, served_names
from gateway.policy.schema import Policy
from gateway.policy.schema.proving import BucketSelection, Rollout, Shadow
from gateway.policy.schema.rules import PoolTraits, When
from gateway.policy.schema.serving import Tenant
from gateway.policy.schema.values import did_you_mean
from gateway.policy.tree import Path, Tree

_REGULAR = re.compile(r"[\\^$()|\[\]{}+]")


def check_references(policy: Policy, tree: Tree) -> list[PolicyError]:
    """All findings about names; errors and warnings."""
    checker = _Checker(policy, tree)
    checker.served_names()
    checker.models()
    checker.pools()
    checker.tenants()
    checker.tools()
    checker.rules()
    checker.shadows()
    checker.rollouts()
    checker.oversight()
    return checker.findings


class _Checker:
    """One walk over a policy; ``findings`` fill as it goes."""

    def __init__(self, policy: Policy, tree: Tree) -> None:
        self.policy = policy
        self.findings: list[PolicyError] = []
        self._tree = tree
        self._lengths = policy.classify.length_words()
        self._tasks = policy.classify.task_words()
        self._adapters = {adapter for model in policy.models.values() for adapter in model.adapters}
        self._tenants = [*policy.tenants, "anonymous"]
        self._tiers = sorted({tenant.tier for tenant in policy.tenants.values()} | {"default"})
        self._guards = policy.guards.named()

    def _say(self, path: Path, message: str, mend: str = "", severity: str = "error") -> None:
        self.findings.append(self._tree.place(path).finding(message, mend, severity))

    def _known(self, path: Path, word: str, known: Iterable[str], kind: str) -> bool:
        words = list(known)
        if word in words:
            return True
        mend = did_you_mean(word, words) or (f"known: {', '.join(words[:12])}" if words else f"there is no {kind} yet")
        self._say(path, f"there is no {kind} {word!r}", mend)
        return False

    def _all_known(self, path: Path, words: Iterable[str] | None, known: Iterable[str], kind: str) -> None:
        for index, word in enumerate(words or ()):
            self._known((*path, index), word, known, kind)

    def _unique(self, section: str, names: list[str]) -> None:
        for index, name in enumerate(names):
            if name in names[:index]:
                first = self._tree.place((section, names.index(name), "name"))
                mend = f"the first is in {first.file}, line {first.line}"
                self._say((section, index, "name"), f"two {section} have the name {name!r}", mend)
            elif name == "none":
                self._say((section, index, "name"), "'none' stands for no rule and cannot be the name of one")

    def served_names(self) -> None:
        """Two things may not answer to one name."""
        first: dict[str, tuple[tuple[str, str | None], Path]] = {}
        for name, meaning, path in claims(self.policy):
            known = first.setdefault(name, (meaning, path))
            if known[1] != path and (known[0] != meaning or "aliases" in path):
                place = self._tree.place(known[1])
                message = f"the name {name!r} is taken already ({place.file}, line {place.line})"
                self._say(path, message, "clients could not tell them apart; rename one")
        for name in self._adapters & {"present", "absent"}:
            self._say(("models",), f"an adapter cannot be called {name!r}, conditions use the word")

    def models(self) -> None:
        pools = self.policy.pools
        for name, model in self.policy.models.items():
            mine = [pool for pool in pools if pools[pool].model == name]
            if not mine:
                self._say(("models", name), f"no pool serves the model {name!r}", "add a pool or remove the model")
            elif model.baseline is not None:
                self._known(("models", name, "baseline"), model.baseline, mine, f"pool of {name}")
            formats = {pools[pool].precision.weights for pool in mine}
            for adapter, written in model.adapters.items():
                if mine and "any" not in written.validated_on and not formats & set(written.validated_on):
                    path: Path = ("models", name, "adapters", adapter, "validated_on")
                    mend = f"the pools of {name} have {', '.join(sorted(formats))}"
                    self._say(path, f"adapter {adapter!r} is validated on no precision that is served", mend)
            file = model.tokenizer.huggingface
            if file is not None and not FilePath(file).is_file():
                path = ("models", name, "tokenizer", "huggingface")
                self._say(
                    path, f"the tokenizer file {file} is not here", "it must be where the gateway runs", "warning"
                )

    def pools(self) -> None:
        self._endpoints()
        aliases = {alias: name for name, model in self.policy.models.items() for alias in model.aliases}
        for name, pool in self.policy.pools.items():
            path: Path = ("pools", name, "model")
            if pool.model in aliases and pool.model not in self.policy.models:
                self._say(path, f"{pool.model!r} is an alias", f"name the model itself: {aliases[pool.model]}")
            elif self._known(path, pool.model, self.policy.models, "model"):
                for adapter in pool.adapters or ():
                    known = self.policy.models[pool.model].adapters
                    self._known(("pools", name, "adapters", adapter), adapter, known, f"adapter of {pool.model}")

    def _endpoints(self) -> None:
        """One model of a runtime is in one precision, so two pools that differ in it do not have it at one address."""
        first: dict[tuple[str, str], str] = {}
        for name, pool in self.policy.pools.items():
            for index, (url, upstream) in enumerate(runs_at(pool)):
                other = first.setdefault((url, upstream), name)
                if self.policy.pools[other].precision != pool.precision:
                    message = f"{url} is an endpoint of pool {other!r} too, which declares another precision"
                    self._say(("pools", name, "endpoints", index), message, "one of them is wrong", "warning")

    def tenants(self) -> None:
        granted = self.policy.classify.tools.grants
        named = served_names(self.policy)
        for name, tenant in self.policy.tenants.items():
            path: Path = ("tenants", name)
            self._all_known((*path, "models"), tenant.models, named, "model, alias or adapter")
            self._all_known((*path, "grants"), tenant.grants, granted, "grant in classify.tools.grants")
            if name == "anonymous":
                self._anonymous(path, tenant)
            elif tenant.allow is not None:
                self._say((*path, "allow"), "only anonymous has allow", "a tenant with keys is always allowed")
            elif not tenant.keys:
                message = f"tenant {name!r} has no keys, so nobody can call as it"
                self._say(path, message, "add keys: [env:NAME]", "warning")
            for index, key in enumerate(tenant.keys):
                holder = next(other for other, its in self.policy.tenants.items() if key in its.keys)
                if holder != name or key in tenant.keys[:index]:
                    self._say((*path, "keys", index), f"this key is listed twice (tenant {holder!r})")
        anonymous = self.policy.tenants.get("anonymous")
        if not any(tenant.keys for tenant in self.policy.tenants.values()) and not (anonymous and anonymous.allow):
            message = "nobody can call: no tenant has a key and anonymous is not allowed"
            self._say(("tenants",), message, "add a tenant with keys, or anonymous: {allow: true}", "warning")

    def _anonymous(self, path: Path, tenant: Tenant) -> None:
        if tenant.keys:
            self._say((*path, "keys"), "anonymous is the tenant of callers without a key; it has none")
        if tenant.allow is None:
            self._say(path, "anonymous must say whether it is allowed", "add allow: true or allow: false")

    def rules(self) -> None:
        self._unique("constraints", [constraint.name for constraint in self.policy.constraints])
        self._unique("routes", [route.name for route in self.policy.routes])
        self._constraints()
        self._routes()

    def _constraints(self) -> None:
        for index, constraint in enumerate(self.policy.constraints):
            path: Path = ("constraints", index)
            self._when((*path, "when"), constraint.when)
            self._traits((*path, "require"), constraint.require)
            self._traits((*path, "forbid"), constraint.forbid)
            if constraint.unless_measured is not None:
                guard = constraint.unless_measured.guard
                self._known((*path, "unless_measured", "guard"), guard, self._guards, "guard")

    def _routes(self) -> None:
        for index, route in enumerate(self.policy.routes):
            path: Path = ("routes", index)
            self._when((*path, "when"), route.when)
            self._all_known((*path, "pools"), route.pools, self.policy.pools, "pool")
            models = {self.policy.pools[pool].model for pool in route.pools if pool in self.policy.pools}
            for at, model in enumerate((route.when.model if route.when else None) or ()):
                if model in self.policy.models and model not in models:
                    message = f"route {route.name!r} speaks of the model {model!r} but names no pool that serves it"
                    self._say((*path, "when", "model", at), message)
        named = {pool for route in self.policy.routes for pool in route.pools}
        mirrored = {shadow.candidate for shadow in self.policy.shadow}
        for pool in self.policy.pools:
            if pool not in named and pool not in mirrored:
                self._say(("pools", pool), f"no route names the pool {pool!r}; it gets no traffic", "", "warning")

    def _when(self, path: Path, when: When | None) -> None:
        if when is None:
            return
        self._selection(path, when)
        for index, inner in enumerate(when.not_ or ()):
            self._when((*path, "not", index), inner)

    def _selection(self, path: Path, when: When | BucketSelection) -> None:
        adapters = [*self._adapters, "present", "absent"]
        for key, words, known in (
            ("model", when.model, self.policy.models),
            ("adapter", when.adapter, adapters),
            ("task", when.task, self._tasks),
            ("length", when.length, self._lengths),
            ("tenant", when.tenant, self._tenants),
            ("tier", when.tier, self._tiers),
        ):
            self._all_known((*path, key), words, known, key)

    def _traits(self, path: Path, traits: PoolTraits | None) -> None:
        if traits is None:
            return
        self._all_known((*path, "pool"), traits.pool, self.policy.pools, "pool")
        for label, values in (traits.labels or {}).items():
            given = {pool.labels[label] for pool in self.policy.pools.values() if label in pool.labels}
            for value in values:
                if value not in given:
                    mend = did_you_mean(value, given) or (f"given: {', '.join(sorted(given))}" if given else "")
                    self._say((*path, "labels", label), f"no pool has the label {label}: {value}", mend, "warning")

    def _pair(self, path: Path, rule: Shadow | Rollout) -> None:
        pools = self.policy.pools
        if not self._known((*path, "candidate"), rule.candidate, pools, "pool"):
            return
        model = pools[rule.candidate].model
        mine = [name for name, pool in pools.items() if pool.model == model]
        if rule.baseline is not None:
            self._known((*path, "baseline"), rule.baseline, mine, f"pool of {model}")
        baseline = rule.baseline or (self.policy.models[model].baseline if model in self.policy.models else None)
        if baseline is None:
            self._say(path, f"{rule.name!r} has no baseline", f"name one here or in models.{model}.baseline")
        elif baseline == rule.candidate:
            self._say((*path, "candidate"), f"the candidate {rule.candidate!r} is the baseline itself")

    def shadows(self) -> None:
        self._unique("shadow", [shadow.name for shadow in self.policy.shadow])
        for index, shadow in enumerate(self.policy.shadow):
            self._when(("shadow", index, "when"), shadow.when)
            self._pair(("shadow", index), shadow)

    def rollouts(self) -> None:
        self._unique("rollouts", [rollout.name for rollout in self.policy.rollouts])
        by = self.policy.classify.buckets.by
        for index, rollout in enumerate(self.policy.rollouts):
            path: Path = ("rollouts", index)
            self._selection((*path, "buckets"), rollout.buckets)
            self._pair(path, rollout)
            self._all_known((*path, "guards"), rollout.guards, self._guards, "guard")
            for field in rollout.buckets.model_fields_set:
                if field not in by:
                    message = f"buckets do not tell {field!r} apart, so a rollout cannot go by it"
                    self._say((*path, "buckets", field), message, f"add {field} to classify.buckets.by")
        for name, guard in self._guards.items():
            if guard.check is not None:
                self._known(("guards", name, "check"), guard.check, [check.value for check in Check], "check")

    def tools(self) -> None:
        """Everywhere else patterns are RE2, so a regular expression may stand where it would hit no tool at all."""
        tools = self.policy.classify.tools
        lists = [("privileged", tools.privileged), ("harmless", tools.harmless)]
        paths: list[tuple[Path, list[str]]] = [(("classify", "tools", name), names) for name, names in lists]
        paths += [(("classify", "tools", "grants", grant), names) for grant, names in tools.grants.items()]
        for path, names in paths:
            for index, name in enumerate(names):
                if _REGULAR.search(name):
                    message = f"{name!r} is a tool's name with * and ? in it, no regular expression"
                    self._say((*path, index), message, "write payment_* for all names that begin so")
                elif ".*" in name:
                    message = f"{name!r} hits only names with a dot: these are no regular expressions"
                    self._say((*path, index), message, f"if that is not meant: {name.replace('.*', '*')}", "warning")

    def oversight(self) -> None:
        tiers = self.policy.gateway.queue.tiers
        for index, tier in enumerate(tiers):  # the last tenant of a tier may go, and the next one come, without a fault
            if tier not in self._tiers:
                mend = did_you_mean(tier, self._tiers)
                self._say(("gateway", "queue", "tiers", index), f"no tenant has the tier {tier!r}", mend, "warning")
        approvers = sum(operator.role == "approver" for operator in self.policy.operators)
        for index, rollout in enumerate(self.policy.rollouts):
            needed = rollout.promote.approvals
            if needed > approvers:
                message = f"{rollout.name!r} waits for {needed} approvals, and {approvers} people may give one"
                mend = "name as many under operators, with role: approver; without them it is never promoted"
                self._say(("rollouts", index, "promote", "approvals"), message, mend, "warning")
        self._unique("notify", [webhook.name for webhook in self.policy.notify])
        self._unique("operators", [operator.name for operator in self.policy.operators])
        holders: dict[str, str] = {}
        for index, operator in enumerate(self.policy.operators):
            if (holder := holders.setdefault(operator.token, operator.name)) != operator.name:
                message = f"operator {holder!r} has this token too"
                self._say(("operators", index, "token"), message, "give each person their own: roles hang on it")
        for tenant in self.policy.records.samples.tenants:
            self._known(("records", "samples", "tenants", tenant), tenant, self._tenants, "tenant")
