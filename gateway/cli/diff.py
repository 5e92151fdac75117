"""``quantgate diff``: one shadow pair, what the baseline answered beside what the candidate answered.

Owns options and how a pair looks on a terminal; scores and parts are as they were stored. Texts are there only where
the policy's samples kept them and the caller has their key. Exit status: 0 = shown, 2 = no such pair, or no way to it.
"""

import base64
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TextIO
from urllib.parse import quote

import orjson
import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text
from sqlalchemy.exc import SQLAlchemyError

from gateway.cli.compare import number, print_differences, print_texts
from gateway.cli.stored import StoredError, ask_admin, open_database, said
from gateway.cli.telling import give_up, print_json
from gateway.core.assemble import Answer, JsonProblemError, assemble, parse_envelope
from gateway.core.assemble.parts import as_object
from gateway.core.comparison import WEIGHTS, Kind, Part
from gateway.core.comparison.explain import explain
from gateway.core.quality import read_request
from gateway.policy.secret import SecretError, secrets_of
from gateway.store import pairs, samples
from gateway.store.engine import StoreError

_WORDS = {
    "compared": "both answered",
    "other_failed": "the candidate gave no answer",
    "reference_failed": "the baseline gave no answer",
    "both_failed": "neither gave an answer: an incident, no agreement",
    "unscored": "nothing can be said",
}


class Texts(NamedTuple):
    """What was said, as bytes; a leg that gave nothing is empty."""

    request: bytes
    baseline: bytes
    candidate: bytes
    noise: bytes


def diff(
    request_id: Annotated[str, typer.Argument(help="As in the x-quantgate-request-id header and the records.")],
    *,
    database: Annotated[
        str | None, typer.Option(help="sqlite:///… or postgresql://…, or env:NAME holding it. Default: --state-dir's.")
    ] = None,
    state_dir: Annotated[Path, typer.Option(help="The gateway's state directory.")] = Path("var/quantgate"),
    admin: Annotated[str | None, typer.Option(help="Ask a running gateway's admin port instead: HOST:PORT.")] = None,
    samples_key: Annotated[
        str | None, typer.Option(help="Key that opens kept texts: env:NAME or file:PATH. Without it: scores alone.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """Show one shadow pair side by side: scores, parts, times, and the texts if they were kept."""
    try:
        key = None if samples_key is None else secrets_of(os.environ, Path.cwd())(samples_key)
        if admin is not None:
            pair, texts = _from_admin(admin, request_id, key)
        else:
            pair, texts = _from_database(database, state_dir, request_id, key)
    except (StoredError, StoreError, SecretError) as error:
        give_up("diff", error)
    except SQLAlchemyError as error:
        give_up("diff", f"the database cannot be read: {said(error)}")
    if as_json:
        print_json(_values(pair, texts))
    else:
        show(pair, texts, sys.stdout, with_key=key is not None)


def _from_database(
    database: str | None, state_dir: Path, request_id: str, key: str | None
) -> tuple[dict[str, Any], Texts | None]:
    engine = open_database(database, state_dir)
    try:
        row = pairs.of_request(engine, request_id)
        kept = samples.of_pair(engine, request_id)
    finally:
        engine.dispose()
    if row is None:
        raise StoredError(f"There is no pair of request {request_id}. Was it mirrored? See /api/v1/pairs.")
    pair: dict[str, Any] = {name: row[name] for name in pairs.PairRow._fields}
    pair |= {name: orjson.loads(row[name]) for name in ("parts", "noise_parts", "likelihood")}
    pair["texts_kept"] = kept is not None
    if kept is None or key is None:
        return pair, None
    sample = samples.Sealer(key).open(request_id, kept.sealed)
    return pair, Texts(sample.request, sample.answer, sample.candidate, sample.noise)


def _from_admin(admin: str, request_id: str, key: str | None) -> tuple[dict[str, Any], Texts | None]:
    headers = {} if key is None else {samples.KEY_HEADER: key}
    pair: dict[str, Any] = orjson.loads(ask_admin(admin, f"/api/v1/pairs/{quote(request_id, safe='')}", None, headers))
    if "answers" not in pair:
        return pair, None
    answers = pair.pop("answers")
    legs = (_bytes(answers[name]) for name in ("baseline", "candidate", "noise"))
    return pair, Texts(_bytes(pair.pop("request")), *legs)


def _bytes(value: dict[str, str] | None) -> bytes:
    if value is None:
        return b""
    return value["text"].encode() if "text" in value else base64.b64decode(value["base64"])


def _values(pair: dict[str, Any], texts: Texts | None) -> dict[str, Any]:
    if texts is None:
        return pair
    said_by = {name: value.decode("utf-8", "replace") for name, value in texts._asdict().items()}
    return pair | {"texts": said_by, "differences": [item._asdict() for item in _differences(pair, texts)]}


def _differences(pair: dict[str, Any], texts: Texts) -> list[Any]:
    body, base, other = _answers(texts)
    return explain(base, other, read_request(body), Kind(pair["kind"]))


def _answers(texts: Texts) -> tuple[dict[str, Any], Answer, Answer]:
    try:
        body = as_object(parse_envelope(texts.request))
    except JsonProblemError:  # cut to the samples' bound
        body = {}
    return body, assemble(body, texts.baseline), assemble(body, texts.candidate)


def show(pair: dict[str, Any], texts: Texts | None, out: TextIO, *, with_key: bool) -> None:
    """The pair in words and columns."""
    console = Console(file=out, highlight=False, width=None if out.isatty() else 120)
    console.print(Text(f"{pair['request_id']}  rule {pair['rule']}  bucket {pair['bucket']}", "bold"))
    console.print(_legs(pair))
    if pair["parts"] or pair["noise_parts"]:
        console.print(_parts(pair))
    for line in _verdict(pair):
        console.print(line)
    if texts is not None:
        body, base, other = _answers(texts)
        print_differences(console, _differences(pair, texts))
        print_texts(console, base, other, read_request(body))
    elif pair["texts_kept"]:
        hint = "the key does not open it" if with_key else "give --samples-key env:NAME to see them"
        console.print(Text(f"texts: kept and sealed; {hint}", "dim"))
    else:
        console.print(Text("texts: not kept (records.samples in the policy decides which are)", "dim"))


def _legs(pair: dict[str, Any]) -> Grid:
    grid = Grid(show_edge=False)
    grid.add_column("")
    grid.add_column(f"baseline {pair['baseline']}", justify="right")
    grid.add_column(f"candidate {pair['candidate']}", justify="right")
    legs = ("baseline", "candidate")
    grid.add_row("answered", *(_failure(pair[f"{leg}_failure"]) for leg in legs))
    grid.add_row("first token", *(_seconds(pair[f"ttft_{leg}_s"]) for leg in legs))
    grid.add_row("whole answer", *(_seconds(pair[f"total_{leg}_s"]) for leg in legs))
    return grid


def _failure(failure: str) -> Text:
    return Text(failure, "red") if failure else Text("yes", "green")


def _seconds(value: float | None) -> Text:
    return Text("-", "dim") if value is None or value < 0 else Text(f"{value:.3f} s")


def _parts(pair: dict[str, Any]) -> Grid:
    grid = Grid(title=f"Agreement as {pair['kind']}", title_justify="left", show_edge=False)
    grid.add_column("part")
    for column in ("weight", "candidate", "baseline again"):
        grid.add_column(column, justify="right")
    weights = WEIGHTS[Kind(pair["kind"])]
    for part in Part:
        found = [pair[column].get(part.value) for column in ("parts", "noise_parts")]
        if any(value is not None for value in found):
            weight = f"{weights[part]:.2f}" if part in weights else "-"
            grid.add_row(part.value, weight, *(number(value) for value in found))
    return grid


def _verdict(pair: dict[str, Any]) -> list[Text]:
    words = Text("agreement ").append(number(pair["agreement"])).append(f"  {_WORDS[pair['verdict']]}")
    if pair["capped_by"]:
        words.append(f", held down by {pair['capped_by']}", "red")
    if pair["unscored"]:
        words.append(f" ({pair['unscored']})", "red")
    lines = [words]
    if pair["noise"] is not None:
        lines.append(Text("baseline with itself ").append(number(pair["noise"])))
    if pair["loss"] is not None:
        style = "red" if pair["loss"] > 0 else "green"
        lines.append(Text("excess ").append(f"{pair['loss']:+.3f}", f"bold {style}").append("  > 0 = worse"))
    else:
        lines.append(Text("excess unknown: no second run of the baseline, or a leg is missing", "dim"))
    if pair["likelihood_gap"] is not None:
        lines.append(Text(f"likelihood gap {pair['likelihood_gap']:+.4f} nats per token{_worst(pair['likelihood'])}"))
    return lines


def _worst(details: dict[str, Any]) -> str:
    """The worst span of the baseline's answer, as the candidate finds it."""
    side = details.get("baseline_answer")
    if not side:
        return ""
    first, last = side["worst_start"] + 1, side["worst_start"] + side["worst_tokens"]
    return f"; worst in tokens {first}-{last} of {side['tokens']}: {side['worst_mean_nats']:+.3f}"
