"""``quantgate explain``: one request against a policy, in a person's words or as JSON.

Resolves no secret and opens no socket. Prints facts about the request, never its text. Exit status: 0 explained (also
when the request would be refused), 1 the policy is rejected or the request is no request (2 is wrong usage).
"""

import sys
from pathlib import Path
from typing import Annotated, Any, TextIO

import msgspec
import typer

from gateway.cli.ask import Answer, UnusableError, answer, ask_of, tenant_of
from gateway.cli.telling import print_json
from gateway.core.decide import NO_ROUTE
from gateway.errors import ApiError, PolicyRejectedError
from gateway.model.enums import COUNTING, Structured, ToolUse
from gateway.model.facts import Facts, Profile
from gateway.policy.compile import compile_table
from gateway.policy.conditions import either
from gateway.policy.load import load
from gateway.policy.secret import unresolved

EXPLAINED, UNUSABLE = 0, 1


def explain(
    request: Annotated[
        Path, typer.Argument(help='A JSON file: the body, or {"path", "headers", "body"}; "-" reads stdin.')
    ],
    config: Annotated[Path, typer.Option(help="Policy: one YAML file or a folder of them.")] = Path("routing_policies"),
    tenant: Annotated[str | None, typer.Option(help="Who calls; by default anonymous, or the only tenant.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """Say in words which pools one request gets, and why."""
    raise typer.Exit(run(request, config, tenant, as_json))


def run(
    request: Path, config: Path, tenant: str | None = None, as_json: bool = False, out: TextIO | None = None
) -> int:
    """Explain the request in file ``request`` by the policy at ``config``; print to ``out``."""
    stream = out if out is not None else sys.stdout
    try:
        table = compile_table(load(config).document, 0, {}, unresolved)
        content = sys.stdin.buffer.read() if str(request) == "-" else request.read_bytes()
        found = answer(table, ask_of(content), tenant_of(table, tenant))
    except (PolicyRejectedError, UnusableError, OSError) as error:
        _print_unusable(stream, error, as_json)
        return UNUSABLE
    except ApiError as error:
        _print_refusal(stream, error, as_json)
        return EXPLAINED
    if as_json:
        print_json(plain(found), stream)
    else:
        stream.write("\n".join(sentences(found)) + "\n")
    return EXPLAINED


def _print_unusable(stream: TextIO, error: Exception, as_json: bool) -> None:
    """As ``check`` and ``test`` say it: whoever reads JSON reads there what is wrong as well."""
    if not as_json:
        print(f"quantgate: {error}", file=sys.stderr)
    elif isinstance(error, PolicyRejectedError):
        print_json({"ok": False, "errors": msgspec.to_builtins(error.findings)}, stream)
    else:
        print_json({"ok": False, "errors": [{"message": str(error)}]}, stream)


def _print_refusal(stream: TextIO, error: ApiError, as_json: bool) -> None:
    if as_json:
        body = {"accepted": False, "status": error.status, "code": error.code, "message": error.message}
        print_json(body, stream)
    else:
        stream.write(f"The gateway answers {error.status} {error.code}: {error.message}\n")


def plain(found: Answer) -> dict[str, Any]:
    """The answer as plain data, without any text of the request."""
    explanation = msgspec.to_builtins(found.explanation)
    refusal = explanation.pop("refusal")
    facts = msgspec.to_builtins(found.reading.facts)
    facts["conversation"] = found.reading.facts.conversation.hex()
    estimate = found.estimate
    return {
        "accepted": refusal is None,
        **(refusal or {}),
        "path": found.ask.path,
        "tenant": found.tenant.name,
        "facts": facts,
        "tokens": {"prompt": estimate.tokens, "exact": estimate.exact, "by": estimate.by},
        **explanation,
    }


def sentences(found: Answer) -> list[str]:
    """The answer in lines of words."""
    explanation = found.explanation
    profile = explanation.profile
    return [
        f"Request      {_request(found.ask.path, found.reading.facts)}",
        f"Caller       {found.tenant.name}, tier {found.tenant.tier}" + (", trusted" if found.tenant.trusted else ""),
        f"Model        {_model(found.reading.facts, profile)}",
        f"Tokens       {_tokens(found)}",
        f"Bucket       {profile.bucket}  (task {profile.task}, length {profile.length}, privilege {profile.privilege})",
        "",
        *_constraints(found),
        "",
        *_routes(found),
        "",
        *_pools(found),
    ]


def _request(path: str, facts: Facts) -> str:
    parts = [f"POST {path}", "streamed" if facts.stream else "not streamed"]
    if facts.messages:
        parts.append(f"{facts.messages} message{'s' if facts.messages > 1 else ''}")
    if facts.tool_use is not ToolUse.NONE:
        names = ", ".join(facts.tools[:8]) + (" …" if len(facts.tools) > 8 else "")
        parts.append(f"tools {facts.tool_use.value}" + (f" ({names})" if names else ""))
    if facts.structured is not Structured.NONE:
        parts.append(f"output {facts.structured.value}")
    sampling = facts.sampling
    if sampling.seed:
        parts.append("seed given")
    if sampling.temperature is not None:
        parts.append(f"temperature {sampling.temperature:g}")
    if sampling.n > 1:
        parts.append(f"n {sampling.n}")
    if facts.images:
        parts.append(f"{facts.images} image{'s' if facts.images > 1 else ''}")
    return ", ".join(parts)


def _model(facts: Facts, profile: Profile) -> str:
    meant = profile.model if profile.adapter is None else f"{profile.model} with adapter {profile.adapter}"
    return meant if facts.model == profile.model else f"{facts.model}, which is {meant}"


def _tokens(found: Answer) -> str:
    profile, estimate = found.explanation.profile, found.estimate
    how = {"count": "counted", "given": "given", "ids": "token ids", "bytes": "bounded by bytes", "sample": "sampled"}
    reserved = profile.context_tokens - profile.prompt_tokens
    whole = f"{profile.prompt_tokens:,} prompt ({how.get(estimate.by, estimate.by)})"
    return f"{whole} + {reserved:,} reserved for the answer = {profile.context_tokens:,}"


def _constraints(found: Answer) -> list[str]:
    lines = ["Constraints"]
    for effect in found.explanation.constraints:
        if not effect.applies:
            lines.append(f"  -  {effect.name} does not apply; it would if: {effect.condition}")
            continue
        lines.append(f"  ✓  {effect.name} applies ({effect.condition}): requires {effect.requires}")
        lines += [f"       rules out {pool}: {objection}" for pool, objection in effect.excludes]
        if not effect.excludes:
            lines.append("       every pool of the model satisfies it")
    return lines if len(lines) > 1 else ["Constraints  none"]


def _routes(found: Answer) -> list[str]:
    lines = ["Routes"]
    for step in found.explanation.routes:
        if step.name == found.explanation.decision.rule:
            lines.append(f"  ✓  {step.name} is the first that matches ({step.condition}): {', '.join(step.pools)}")
            break
        if found.explanation.profile.model not in step.models:
            lines.append(f"  -  {step.name} is for model {either(step.models)}")
        else:
            lines.append(f"  -  {step.name} does not match; it would if: {step.condition}")
    if found.explanation.decision.rule == NO_ROUTE:
        lines.append("  no route matches")
    return lines


def _outcome(found: Answer) -> str:
    decision, refusal = found.explanation.decision, found.explanation.refusal
    if refusal is not None:
        return f"Pools        none: the request is refused with {refusal.status} {refusal.code}: {refusal.message}"
    if not decision.pools:
        return "Pools        none: the request is refused with 503"
    return f"Pools        {' → '.join(decision.pools)}"


def _why_lifted(profile: Profile) -> str:
    if profile.api in COUNTING:
        return "whose context window counts for nothing here: the request only asks how long a text is"
    return "although the request exceeds its context window: the prompt may fit, so the runtime has the last word"


def _pools(found: Answer) -> list[str]:
    decision = found.explanation.decision
    lines = [_outcome(found)]
    for verdict in found.explanation.pools:
        if verdict.place:
            lifted = f", {_why_lifted(found.explanation.profile)}" if verdict.reasons else ""
            lines.append(f"  {verdict.place}  {verdict.pool} ({verdict.precision}){lifted}")
        else:
            lines.append(f"  -  {verdict.pool} ({verdict.precision}): {'; '.join(verdict.reasons)}")
    if decision.rollout is not None:
        lines.append(
            f"Rollout      {decision.rollout}: its share, latched while serving, decides the arm by conversation"
        )
    return lines
