"""The accounts of a part begin where the part began, and their last lines are waited for."""

from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest

from gateway.demo import gathering as module
from gateway.demo.client import Answer
from gateway.demo.fleet import FleetError, RunningServer, ServerSpec
from gateway.demo.gathering import Witnesses, counters_of
from gateway.demo.witness import WATERMARK, mark_of
from gateway.demo.workload import Item, Kind

SERVER = RunningServer(ServerSpec("q4", Path("m.gguf"), "m"), "http://127.0.0.1:1", 1)


class Scene:
    """A gateway and a server whose words are written down by the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests = 0
        self.options = SimpleNamespace(access_log=folder / "access.log")

    def metrics(self) -> str:
        """The gateway's counter."""
        return f'quantgate_requests_total{{result="ok"}} {self.requests}\n'

    def server(self, url: str, path: str) -> tuple[int, bytes]:
        """The server's counters."""
        del url, path
        names = ("prompt_tokens_total", "prompt_tokens_cached_total", "tokens_predicted_total", "n_tokens_max")
        values = (30 * self.requests, 10 * self.requests, 20 * self.requests, 60)
        return 200, "".join(f"llamacpp:{n} {v}\n" for n, v in zip(names, values, strict=True)).encode()

    def tell(self, number: int, *, ended: bool = True) -> None:
        """One request more, in every log."""
        self.requests += 1
        line = {"at": f"2026-11-29T12:00:{number:02}Z", "request_id": f"id-{number}", "status": 200, "result": "ok"}
        with self.options.access_log.open("ab") as log:
            log.write(orjson.dumps({**line, "total_ms": 5.0, "generation": 1}) + b"\n")
        said = (
            f"\t\t{WATERMARK} = {mark_of(number)}\n"
            f"slot launch_slot_: id  0 | task {number} | processing task, is_child = 0\n"
            f"slot update_slots: id  0 | task {number} | new prompt, n_ctx_slot = 8192, task.n_tokens = 40\n"
        )
        if ended:
            said += f"slot      release: id  0 | task {number} | stop processing: n_tokens = 60, truncated = 0\n"
        with (self.folder / "q4.log").open("a") as log:
            log.write(said)


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Two requests were made before."""
    found = Scene(tmp_path)
    monkeypatch.setattr(module, "get", found.server)
    for number in (1, 2):
        found.tell(number)
    return found


def asked(*numbers: int) -> tuple[list[Item], dict[int, Answer]]:
    """What the client sent and got."""
    items = [Item(number, Kind.CHAT, "acme", {}) for number in numbers]
    return items, {number: Answer(number, 200, 0.1, request_id=f"id-{number}") for number in numbers}


def test_what_was_before_is_not_told_again(scene: Scene) -> None:
    """Lines, tasks, counters and tokens count from the mark."""
    witnesses = Witnesses(scene, [SERVER], scene.folder)  # type: ignore[arg-type]
    mark = witnesses.mark()
    for number in (3, 4, 5):
        scene.tell(number)
    evidence = witnesses.gather(*asked(3, 4, 5), mark)
    assert [entry.request_id for entry in evidence.entries] == ["id-3", "id-4", "id-5"]
    assert evidence.counted == 3
    (account,) = evidence.accounts
    assert [sighting.number for sighting in account.sightings] == [3, 4, 5]
    assert (account.counters.prompt_tokens, account.counters.completion_tokens) == (120, 60)


def test_last_lines_are_waited_for(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are written in batches: what is not there yet comes."""
    witnesses = Witnesses(scene, [SERVER], scene.folder)  # type: ignore[arg-type]
    mark = witnesses.mark()
    monkeypatch.setattr(module.time, "sleep", lambda _: scene.tell(3))
    assert len(witnesses.gather(*asked(3), mark).entries) == 1


@pytest.mark.parametrize("missing", ["line", "end"])
def test_what_never_comes_is_not_waited_for_for_ever(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """The accounts are taken as they are, and the checks say what is missing."""
    witnesses = Witnesses(scene, [SERVER], scene.folder)  # type: ignore[arg-type]
    mark = witnesses.mark()
    if missing == "end":
        scene.tell(3, ended=False)
    clock = [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    evidence = witnesses.gather(*asked(3), mark)
    assert clock[0] > module.LAST_LINES_S
    assert len(evidence.entries) == (1 if missing == "end" else 0)


def test_before_the_first_request_there_is_no_log(scene: Scene) -> None:
    """A gateway that served nothing has written nothing."""
    scene.options.access_log.unlink()
    witnesses = Witnesses(scene, [SERVER], scene.folder)  # type: ignore[arg-type]
    assert witnesses.mark().entries == 0


def test_a_server_that_is_gone_is_named() -> None:
    """A server that tells no counters any more is an error with its name, and never a row of zeros."""
    with pytest.raises(FleetError, match="server q4 at"):
        counters_of(SERVER)
