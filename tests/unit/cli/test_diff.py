"""``quantgate diff``: from a database and from a running gateway, with and without texts."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.cli import diff as module
from gateway.store import pairs, samples
from gateway.store.engine import open_engine, url_of
from gateway.store.migrate import upgrade
from gateway.store.samples import PAIR, Sample, SampleRow, Sealer
from tests.unit.dataplane.pair_values import chat_answer
from tests.unit.store.test_pairs import BASE

KEY = "correct horse battery staple"
REQUEST = json.dumps({"messages": [{"role": "user", "content": "Capital of France?"}]}).encode()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory with one pair whose texts were kept, one without, and one that failed."""
    engine = open_engine(url_of(None, tmp_path))
    upgrade(engine)
    details = json.dumps({"baseline_answer": {"mean_nats": 0.2, "tokens": 9, "worst_mean_nats": 1.5, "worst_start": 2,
                                              "worst_tokens": 4}})  # fmt: skip
    pairs.inserter(engine).add([
        BASE._replace(request_id="kept", parts='{"text": 0.4, "numbers": 0.0}', noise_parts='{"text": 1.0}',
                      likelihood_gap=0.2, likelihood=details),
        BASE._replace(request_id="bare", noise=None, loss=None),
        BASE._replace(request_id="down", verdict="other_failed", agreement=0.0, candidate_failure="timeout"),
    ])  # fmt: skip
    texts = Sample("chat", REQUEST, chat_answer("Paris, since 987."), chat_answer("Lyon, since 1987. \x1b[2J"))
    samples.inserter(engine).add([SampleRow("kept", 1.0, 9e9, "t", "b", "bf16", PAIR, Sealer(KEY).seal("kept", texts))])
    engine.dispose()
    return tmp_path


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["diff", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_scores_and_parts_without_texts(state: Path) -> None:
    """What is stored is shown, and that texts are sealed; none of them is."""
    code, out, _ = run("kept", "--state-dir", str(state))
    assert code == 0
    for words in ("baseline bf16", "candidate int4", "numbers", "+0.250", "+0.2000 nats", "tokens 3-6 of 9: +1.500"):
        assert words in out
    assert "give --samples-key" in out
    assert "Paris" not in out


def test_texts_side_by_side_for_who_has_the_key(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Differences and marked words, with an answer's escape sequences shown and not obeyed."""
    monkeypatch.setenv("SAMPLES", KEY)
    code, out, _ = run("kept", "--state-dir", str(state), "--samples-key", "env:SAMPLES")
    assert code == 0
    assert "[-Paris" in out
    assert "{+Lyon" in out
    assert "1987" in out
    assert "\x1b[2J" not in out


def test_as_json(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as values; texts only with the key."""
    monkeypatch.setenv("SAMPLES", KEY)
    plain = json.loads(run("kept", "--state-dir", str(state), "--json")[1])
    assert (plain["agreement"], plain["texts_kept"], plain["parts"]["numbers"]) == (0.75, True, 0.0)
    assert "texts" not in plain
    opened = json.loads(run("kept", "--state-dir", str(state), "--json", "--samples-key", "env:SAMPLES")[1])
    assert "Lyon" in opened["texts"]["candidate"]
    assert {item["part"] for item in opened["differences"]} >= {"numbers"}


@pytest.mark.parametrize(
    ("request_id", "words"),
    [("bare", ["excess unknown", "texts: not kept"]), ("down", ["timeout", "the candidate gave no answer"])],
)
def test_what_is_missing_is_said(state: Path, request_id: str, words: list[str]) -> None:
    """A pair without a second run, and one whose candidate failed."""
    code, out, _ = run(request_id, "--state-dir", str(state))
    assert code == 0
    for word in words:
        assert word in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody"], "no pair of request nobody"),
        (["kept", "--samples-key", "env:UNSET_KEY_9"], "is not set"),
        (["kept", "--samples-key", "plain"], "begins with env: or file:"),
        (["kept", "--admin", "127.0.0.1:1"], "Nothing answers"),
    ],
)
def test_what_cannot_be_shown_is_said(state: Path, arguments: list[str], words: str) -> None:
    """On stderr, with exit status 2."""
    code, out, err = run(*arguments, "--state-dir", str(state))
    assert (code, out) == (2, "")
    assert words in err


def test_a_wrong_key(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It opens nothing, and the pair is not taken for one without texts."""
    monkeypatch.setenv("SAMPLES", "x" * 20)
    code, _, err = run("kept", "--state-dir", str(state), "--samples-key", "env:SAMPLES")
    assert code == 2
    assert "another key" in err


def test_from_a_running_gateway(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The admin API's pair is shown alike; the key goes along in a header."""
    asked: list[Any] = []
    answer = BASE._asdict() | {
        "parts": {"text": 0.4}, "noise_parts": {}, "likelihood": {}, "texts_kept": True, "api": "chat",
        "request": {"text": REQUEST.decode()},
        "answers": {
            "baseline": {"text": chat_answer("Paris").decode()}, "candidate": {"base64": "/w=="}, "noise": None,
        },
    }  # fmt: skip

    def ask(admin: str, path: str, query: object, headers: dict[str, str]) -> bytes:
        asked.append((admin, path, headers))
        return json.dumps(answer).encode()

    monkeypatch.setattr(module, "ask_admin", ask)
    monkeypatch.setenv("SAMPLES", KEY)
    code, out, _ = run("a/b", "--admin", "h:1", "--samples-key", "env:SAMPLES", "--json")
    assert code == 0
    assert asked == [("h:1", "/api/v1/pairs/a%2Fb", {"x-quantgate-samples-key": KEY})]
    assert "Paris" in json.loads(out)["texts"]["baseline"]
