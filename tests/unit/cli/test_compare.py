"""``quantgate compare`` on files."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.compare import BAD_INPUT, COMPARED, run

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "Capital of France?"}]}


def whole(text: str, finish: str = "stop") -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}]}).encode()


def streamed(*pieces: str) -> bytes:
    chunks: list[dict[str, Any]] = [
        {"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in pieces
    ]
    chunks.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    return b"".join(b"data: " + json.dumps({"choices": [c]}).encode() + b"\n\n" for c in chunks) + b"data: [DONE]\n\n"


class Files:
    """A folder with a request and answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.request = self.write("request.json", json.dumps(REQUEST).encode())

    def write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    def compare(self, *answers: bytes, as_json: bool = False, task: str = "chat") -> tuple[int, str]:
        out = io.StringIO()
        paths = [self.write(f"answer{number}", content) for number, content in enumerate(answers)]
        again = paths[2] if len(paths) > 2 else None
        code = run(self.request, paths[0], paths[1], again, as_json, task=task, out=out)
        return code, out.getvalue()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_prints_score_parts_and_excess(files: Files) -> None:
    """A person sees the score, each part with its weight, what differs, the marked text, and the excess."""
    code, text = files.compare(
        whole("Paris has 2,100,000 people."), whole("Paris has 2,100,001 people."), whole("Paris has 2,100,000 people.")
    )
    assert code == COMPARED
    for expected in (
        "Agreement as chat",
        "numbers",
        "0.15",
        "2100000",
        "2100001",
        "excess: +",
        "[-2,100,000 -]{+2,100,001 +}",
    ):
        assert expected in text


def test_without_a_second_run_the_excess_is_unknown(files: Files) -> None:
    """No noise leg, no excess: the difference alone would be read as a loss."""
    code, text = files.compare(whole("Paris."), whole("Lyon."))
    assert code == COMPARED
    assert "excess: unknown" in text


def test_json_has_everything(files: Files) -> None:
    """The same as JSON, with closed names."""
    code, text = files.compare(whole("It is 5."), whole("It is 6."), whole("It is 5."), as_json=True)
    found = json.loads(text)
    assert code == COMPARED
    assert found["agreement"]["verdict"] == "compared"
    assert found["noise"]["score"] == 1.0
    assert found["excess"]["trip"] == pytest.approx(1.0 - found["agreement"]["score"])
    assert {"choice": 0, "part": "numbers", "what": "only here", "baseline": "5", "candidate": "6"} in found[
        "differences"
    ]


def test_a_stream_and_a_body_are_told_apart_by_themselves(files: Files) -> None:
    """Raw SSE and JSON may be mixed; the same text agrees in full."""
    _, text = files.compare(streamed("Par", "is."), whole("Paris."), as_json=True)
    assert json.loads(text)["agreement"]["score"] == 1.0


@pytest.mark.parametrize(
    "failed",
    [b"", b'{"error": {"message": "overloaded", "code": 503}}', whole("Paris.")[:60], streamed("Par", "is.")[:150]],
)
def test_a_failed_answer_is_data(files: Files, failed: bytes) -> None:
    """Empty, an error, cut off in a body or in a stream: the leg failed, the files are fine."""
    code, text = files.compare(whole("Paris."), failed, whole("Paris."), as_json=True)
    assert code == COMPARED
    assert json.loads(text)["agreement"]["verdict"] == "other_failed"
    assert json.loads(text)["excess"]["trip"] == 1.0


def test_the_task_chooses_the_weights(files: Files) -> None:
    """--task rag looks at citations more than chat does."""
    answers = whole("Paris is it [1]."), whole("Paris is it [2].")
    scores = [
        json.loads(files.compare(*answers, as_json=True, task=task)[1])["agreement"]["score"]
        for task in ("rag", "chat")
    ]
    assert scores[0] < scores[1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("request.json", b'{"model": "m",\n "messages": [}', "request.json:2:15: error: no JSON"),
        ("request.json", b"[]", "request.json:1:1: error: this is JSON, but no object"),
        ("request.json", whole("x"), "the order is REQUEST BASELINE CANDIDATE"),
        ("answer1", b"Paris.", "answer1:1:1: error: no JSON"),
        ("answer1", b'{"choices": [\n  oops]}', "answer1:2:3: error: no JSON"),
        ("answer1", b'{"model": "m", "messages": []}', "answer1:1:1: error: the body holds no choice"),
        ("answer1", b"data: oops\n\ndata: oops\n\n", "answer1:1:1: error: none of the stream's 2 events"),
    ],
)
def test_bad_files_are_named_with_place_and_mend(
    files: Files, capsys: pytest.CaptureFixture[str], name: str, content: bytes, message: str
) -> None:
    """Exit 2, and stderr says file, line, column, what is wrong and what to give instead."""
    answers = [files.write("answer0", whole("x")), files.write("answer1", whole("x"))]
    files.write(name, content)
    out = io.StringIO()
    assert run(files.request, answers[0], answers[1], out=out) == BAD_INPUT
    said = capsys.readouterr().err
    assert message in said
    assert said.rstrip().endswith(")")
    assert out.getvalue() == ""


def test_a_file_that_is_not_there(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong path is bad input, not a traceback."""
    missing = files.folder / "nowhere.json"
    assert run(files.request, missing, missing) == BAD_INPUT
    assert f"{missing}:1:1: error: cannot be read: No such file" in capsys.readouterr().err


def test_answers_cannot_drive_the_terminal(files: Files) -> None:
    """Escape sequences and lone surrogates in an answer are shown, not obeyed, and not a crash."""
    hostile = "red \x1b[31m alert \x07 [bold]x[/bold] \ud83d"
    code, text = files.compare(whole("plain [bold]x[/bold]"), whole(hostile))
    assert code == COMPARED
    assert "\x1b" not in text and "\x07" not in text
    assert "\\u001b[31m alert \\u0007" in text and "bold]x" in text
    text.encode()


def test_long_texts_are_cut(files: Files) -> None:
    """What both sides share is elided, and the display ends somewhere."""
    base = " ".join(f"word{n}" for n in range(3_000))
    _, text = files.compare(whole(base), whole(base.replace("word1500 ", "WORD ")))
    assert "[-word1500 -]{+WORD +}" in text.replace("\n", " ").replace("  ", " ")
    assert len(text) < 5_000
