"""``quantgate compare``: two or three captured answers to one request, held against each other.

Owns what an answer must be to be compared, and the printing. The comparison itself is
``core.comparison``, the same that shadow pairs and replays use. Exit status: 0 compared (whatever the result), 2 bad
input.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from gateway.cli.captured import ANSWER_MEND, REQUEST_MEND, BadInputError, bad, no_json, read_bytes, read_object
from gateway.core.assemble import Answer, JsonProblemError, assemble, looks_like_stream, parse_envelope
from gateway.core.comparison import CAPS, WEIGHTS, Agreement, LegState, Part, Triple, Verdict, excess
from gateway.core.comparison.explain import Difference, SideBySide, explain, side_by_side
from gateway.core.comparison.parts import STRUCTURED_TEXT_WEIGHTS
from gateway.core.quality import Asked, read_request

COMPARED, BAD_INPUT = 0, 2
TASKS = ("chat", "code", "rag", "extraction", "tools")

_CONTEXT_CHARS = 80
_MOST_TEXT_CHARS = 4_000
_WORDS = {
    Verdict.COMPARED: "compared",
    Verdict.REFERENCE_FAILED: "the baseline failed, the other answered",
    Verdict.OTHER_FAILED: "failed, the baseline answered",
    Verdict.BOTH_FAILED: "both failed: an incident, not agreement",
    Verdict.UNSCORED: "could not be scored",
}


def compare(
    *,
    request: Annotated[Path, typer.Argument(help="The request body, JSON.")],
    baseline: Annotated[Path, typer.Argument(help="The baseline's answer: JSON or raw SSE.")],
    candidate: Annotated[Path, typer.Argument(help="The candidate's answer: JSON or raw SSE.")],
    baseline2: Annotated[Path | None, typer.Argument(help="A second run of the baseline: the noise leg.")] = None,
    task: Annotated[str, typer.Option(help=f"One of {', '.join(TASKS)}.")] = "chat",
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """Compare a candidate's answer with the baseline's: score, parts, differences, and excess over the noise."""
    if task not in TASKS:
        raise typer.BadParameter(f"expected one of {', '.join(TASKS)}", param_hint="--task")
    raise typer.Exit(run(request, baseline, candidate, baseline2, as_json, task=task))


def run(
    request: Path,
    baseline: Path,
    candidate: Path,
    baseline2: Path | None = None,
    as_json: bool = False,
    *,
    task: str = "chat",
    out: TextIO | None = None,
) -> int:
    """Compare the files and print the result to ``out``. 0 = compared, 2 = a file is unusable (said on stderr)."""
    stream = out if out is not None else sys.stdout
    try:
        body = _read_request(request)
        answers = [_read_answer(path, body) if path is not None else None for path in (baseline, candidate, baseline2)]
    except BadInputError as error:
        print(error.finding, file=sys.stderr)
        return BAD_INPUT
    base, other, again = answers
    assert base is not None and other is not None  # noqa: S101 (their paths are not optional)
    asked = read_request(body)
    triple = excess(base, other, again if again is not None else LegState.NOT_ASKED, asked, task)
    assert isinstance(triple.agreement, Agreement)  # noqa: S101 (both legs were given)
    found = explain(base, other, asked, triple.agreement.kind)
    if as_json:
        stream.write(json.dumps(_as_values(triple, found), indent=2) + "\n")
        return COMPARED
    console = Console(file=stream, highlight=False, width=None if stream.isatty() else 120)
    _print_scores(console, triple)
    print_differences(console, found)
    print_texts(console, base, other, asked)
    return COMPARED


def _read_request(path: Path) -> dict[str, Any]:
    body = read_object(path, REQUEST_MEND)
    if not {"messages", "input", "prompt"} & body.keys():
        mend = "is this an answer? the order is REQUEST BASELINE CANDIDATE [BASELINE2]" if "choices" in body else ""
        raise bad(path, "no messages, input or prompt in the request", mend or REQUEST_MEND)
    return body


def _read_answer(path: Path, request: dict[str, Any]) -> Answer:
    raw = read_bytes(path)
    answer = assemble(request, raw)
    if not looks_like_stream(raw) and raw.strip():
        try:
            parse_envelope(raw)
        except JsonProblemError as problem:
            if not problem.cut:  # a body that was cut off is a broken-off answer, which is data
                raise no_json(path, raw, problem, ANSWER_MEND) from None
    if answer.problem and raw.strip() and not answer.broken_tail:
        raise bad(path, answer.problem, ANSWER_MEND)
    if answer.streamed and not answer.choices and not answer.errors and answer.broken_events:
        raise bad(path, f"none of the stream's {answer.events} events can be read", ANSWER_MEND)
    return answer


def _as_values(triple: Triple, found: list[Difference]) -> dict[str, Any]:
    loss = triple.loss
    return {
        "agreement": _agreement_values(triple.agreement),
        "noise": _agreement_values(triple.noise),
        "excess": None
        if loss is None
        else {
            "trip": loss.trip,
            "promotion": loss.promotion,
            "unscored": loss.unscored,
            "both_failed": loss.both_failed,
        },
        "differences": [
            {"choice": d.choice, "part": d.part, "what": d.what, "baseline": d.reference, "candidate": d.other}
            for d in found
        ],
    }


def _agreement_values(agreement: Agreement | LegState) -> dict[str, Any] | None:
    if isinstance(agreement, LegState):
        return None
    return {
        "verdict": agreement.verdict,
        "kind": agreement.kind,
        "score": agreement.score,
        "capped_by": agreement.capped_by,
        "unscored": agreement.unscored or None,
        "parts": dict(agreement.parts),
    }


def _print_scores(console: Console, triple: Triple) -> None:
    agreement, noise = triple.agreement, triple.noise
    assert isinstance(agreement, Agreement)  # noqa: S101 (both legs were given)
    with_noise = isinstance(noise, Agreement)
    grid = Grid(title=f"Agreement as {agreement.kind}", title_justify="left", show_edge=False)
    grid.add_column("part")
    grid.add_column("weight", justify="right")
    grid.add_column("candidate", justify="right")
    columns = [dict(agreement.parts)]
    if isinstance(noise, Agreement):
        grid.add_column("baseline again", justify="right")
        columns.append(dict(noise.parts))
    weights = WEIGHTS[agreement.kind]
    if agreement.kind == "structured" and Part.JSON not in columns[0]:
        weights = STRUCTURED_TEXT_WEIGHTS
    for part in Part:
        if any(part in column for column in columns):
            weight = f"{weights[part]:.2f}" if part in weights else (f"cap {CAPS[part]:.1f}" if part in CAPS else "-")
            grid.add_row(part, weight, *(number(column.get(part)) for column in columns))
    if agreement.parts or (with_noise and columns[-1]):
        console.print(grid)
    console.print(_line("candidate", agreement))
    if isinstance(noise, Agreement):
        console.print(_line("baseline again", noise))
    console.print(_excess_line(triple))


def _line(name: str, agreement: Agreement) -> Text:
    score = number(agreement.score)
    score.stylize("bold")
    text = Text(f"{name}: ").append(score).append(f"  {_WORDS[agreement.verdict]}")
    if agreement.capped_by is not None:
        text.append(f", held down by {agreement.capped_by}", "red")
    if agreement.unscored:
        text.append(f" ({agreement.unscored})", "red")
    return text


def _excess_line(triple: Triple) -> Text:
    loss = triple.loss
    if loss is None:
        return Text("excess: unknown; a second run of the baseline would tell its own noise", "dim")
    if loss.trip is None:
        return Text(f"excess: unscored; counts {loss.promotion:+.3f} against promotion", "red")
    style = "red" if loss.trip > 0 else "green"
    return Text("excess: ").append(f"{loss.trip:+.3f}", f"bold {style}").append("  noise minus candidate; > 0 = worse")


def number(value: float | None) -> Text:
    """A part or a score: green, yellow, red."""
    if value is None:
        return Text("-", "dim")
    return Text(f"{value:.3f}", "green" if value >= 0.95 else "yellow" if value >= 0.5 else "red")


def print_differences(console: Console, found: list[Difference]) -> None:
    """What differs, part by part."""
    if not found:
        console.print(Text("no differences but wording", "dim"))
        return
    grid = Grid(title="Differences", title_justify="left", show_edge=False)
    for column in ("part", "what", "baseline", "candidate"):
        grid.add_column(column, overflow="fold")
    for d in found:
        where = f"choice {d.choice}: {d.what}" if d.choice else d.what
        grid.add_row(d.part, _shown(where), _shown(d.reference, "green"), _shown(d.other, "red"))
    console.print(grid)


def print_texts(console: Console, base: Answer, other: Answer, asked: Asked) -> None:
    """The texts as one, with what only one side has marked."""
    for side in side_by_side(base, other, asked):
        if any(change.tag != "equal" for change in side.changes):
            console.print(Text(f"Text of choice {side.choice}: [-baseline only-] {{+candidate only+}}", "dim"))
            console.print(_merged(side))


def _merged(side: SideBySide) -> Text:
    text = Text()
    for change in side.changes:
        if len(text) > _MOST_TEXT_CHARS:
            text.append(" …", "dim")
            break
        if change.tag == "equal":
            kept = change.left
            if len(kept) > 2 * _CONTEXT_CHARS + 20:
                kept = f"{kept[:_CONTEXT_CHARS]} … {kept[-_CONTEXT_CHARS:]}"
            text.append(_safe(kept))
        elif change.tag == "delete":
            text.append(f"[-{_safe(change.left)}-]", "strike red")
        else:
            text.append(f"{{+{_safe(change.right)}+}}", "green")
    return text


def _shown(text: str, style: str = "") -> Text:
    return Text(_safe(text), style) if text else Text("-", "dim")


def _safe(text: str) -> str:
    """An answer may hold escape sequences; a terminal must show them and not obey them."""
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\u{ord(c):04x}" for c in text)
