"""What is replayed: lines of a file and sealed samples; what cannot be sent keeps its reason."""

import json
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.replay.given import Item, from_file, from_samples, of_requests, sendable
from gateway.store import samples
from gateway.store.engine import StoreError, open_engine, url_of
from gateway.store.migrate import upgrade
from gateway.store.samples import Sample, SampleRow, Sealer
from tests.unit.cli.replay.pools import chat
from tests.unit.control.conftest import outcome
from tests.unit.store.outcome_rows import Record, put

KEY = "0123456789abcdef0123"


def items_of(folder: Path, *lines: object) -> list[Item]:
    file = folder / "requests.jsonl"
    file.write_bytes(b"\n".join(line if isinstance(line, bytes) else orjson.dumps(line) for line in lines))
    return from_file(file)


def test_bodies_and_openais_batch_format(tmp_path: Path) -> None:
    """A bare body's path is told by its fields; a batch line brings its id and path."""
    bare, batch, wrapped, messages = items_of(
        tmp_path,
        chat("a"),
        {"custom_id": "b1", "method": "POST", "url": "/v1/chat/completions", "body": chat("b")},
        b"",
        {"path": "/v1/completions", "body": {"model": "m", "prompt": "c"}},
        {"model": "m", "system": "s", "messages": [], "max_tokens": 4},
    )
    assert (bare.id, bare.path, bare.body) == ("line-1", "/v1/chat/completions", chat("a"))
    assert (batch.id, batch.path) == ("b1", "/v1/chat/completions")
    assert (wrapped.path, messages.path) == ("/v1/completions", "/v1/messages")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"nonsense", "not JSON"),
        ([1], "not a JSON object"),
        ({"a": 1}, "does not tell its API"),
        ({"custom_id": "x", "url": "/v1/embeddings", "body": {"input": "a"}}, "generates no answer"),
        ({"custom_id": "x", "method": "GET", "url": "/v1/models", "body": {}}, "only POST"),
    ],
)
def test_what_cannot_be_sent_says_why(tmp_path: Path, line: object, problem: str) -> None:
    """And is never sent."""
    (found,) = items_of(tmp_path, line)
    assert problem in found.problem
    assert list(sendable([found])) == []


@given(st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line and b"\r" not in line), max_size=5))
def test_any_file_is_read(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    """Whatever its lines hold."""
    for found in items_of(tmp_path_factory.mktemp("f"), *lines):
        assert found.problem or found.body


class Kept:
    """A database with samples."""

    def __init__(self, folder: Path) -> None:
        self.engine = open_engine(url_of(None, folder))
        upgrade(self.engine)

    def add(self, name: str, request: bytes, api: str = "chat", key: str = KEY, task: str = "code") -> None:
        sealed = Sealer(key).seal(name, Sample(api, request, b"answer"))
        samples.inserter(self.engine).add([tuple(SampleRow(name, 1.0, 9e9, "t", "x", "p", "share", sealed))])
        put(self.engine, Record(outcome(request_id=name, task=task)))

    def items(self, **wanted: str) -> dict[str, Item]:
        filters = {"bucket": "", "pool": "", "tenant": ""} | wanted
        return {item.id: item for item in from_samples(self.engine, KEY, most=100, **filters)}  # type: ignore[arg-type]


def test_samples_are_opened_with_their_task(tmp_path: Path) -> None:
    """Oldest first; what was cut at its cap, another API, or another key's sample says so."""
    kept = Kept(tmp_path)
    whole = json.dumps(chat("a")).encode()
    kept.add("good", whole)
    kept.add("cut", whole[:20])
    kept.add("vectors", b"{}", api="embeddings")
    kept.add("foreign", whole, key="another-key-another-key")
    found = kept.items()
    assert list(found) == ["good", "cut", "vectors", "foreign"]
    assert (found["good"].body, found["good"].task, found["good"].bucket) == (chat("a"), "code", "x")
    assert "cut at" in found["cut"].problem
    assert "generates no answer" in found["vectors"].problem
    assert "another key sealed it" in found["foreign"].problem
    assert kept.items(pool="none") == {}


def test_the_samples_of_certain_requests_and_no_others(tmp_path: Path) -> None:
    """A request whose texts are gone is told, not left out."""
    kept = Kept(tmp_path)
    for name in ("a", "b", "c"):
        kept.add(name, json.dumps(chat(name)).encode())
    found = of_requests(kept.engine, KEY, ["c", "gone", "a"])
    assert [item.id for item in found] == ["a", "c", "gone"]
    assert found[0].body == chat("a")
    assert "not kept" in found[2].problem
    assert [item.id for item in sendable(found)] == ["a", "c"]


def test_a_key_that_opens_nothing_is_an_error(tmp_path: Path) -> None:
    """Better than a replay of nothing."""
    kept = Kept(tmp_path)
    kept.add("a", b"{}", key="another-key-another-key")
    with pytest.raises(StoreError, match="None of 1 samples"):
        kept.items()
