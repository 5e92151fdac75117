"""``quantgate rollout``: shows what the API says, sends what a person asks, and fails with the mend."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli import app
from gateway.cli.rollout import DONE, REFUSED
from gateway.cli.telling import UNUSABLE

SERIES = {
    "series": "json",
    "asked": True,
    "verdict": "not_enough",
    "reasons": ["12 of at least 300 outcomes [x]"],
    "bad": 1.0,
    "outcomes": 12,
    "limit": 0.01,
    "interval": [0.001, 0.3],
    "suspicion": -4.2,
    "baseline": {"suspicion": -6.0},
}
ROW = {
    "rollout": "r",
    "bucket": "m/short/chat",
    "state": "stepping",
    "cause": "",
    "stage": 0,
    "stages": [{}, {}],
    "share_bp": 500,
    "reason": "int4 is ready",
    "refused": "",
    "series": [SERIES],
}
BUDGET = {
    "false_rollbacks_per_year": 1.0,
    "slots": 1024,
    "slots_used": 12,
    "lumps_granted_this_year": 1e-4,
    "lumps_per_year": 0.5,
}
STATUS = {"restored": True, "brake_engaged_at": None, "budget": BUDGET, "buckets": [ROW]}
EVENT = {
    "at": 1_700_000_000.0,
    "bucket": "m/short/chat",
    "event": "fail",
    "before": "stepping",
    "after": "rolled_back",
    "share_bp": -1,
    "actor": "quantgate",
    "reason": "json tripped",
}


class Admin:
    """An admin port that answers as told and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[tuple[str, str, bytes, str | None]] = []
        admin = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                admin.asked.append((self.command, self.path, body, self.headers.get("Authorization")))
                status, found = admin.answers.get(self.path.partition("?")[0], (404, {"error": {"message": "no"}}))
                data = found if isinstance(found, bytes) else json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = answer  # noqa: N815 - the server's names

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def admin() -> Iterator[Admin]:
    """A listening one."""
    made = Admin()
    yield made
    made.server.shutdown()
    made.server.server_close()


def run(admin: Admin, *arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(
        app, ["rollout", *arguments, "--admin", admin.address], env={"QUANTGATE_TOKEN": "t-1", "COLUMNS": "200"}
    )
    return done.exit_code, done.output


def test_status_shows_state_share_and_what_is_missing(admin: Admin) -> None:
    """One line a bucket; with --bucket every guard beside its baseline."""
    admin.answers["/api/v1/rollouts"] = (200, STATUS)
    code, said = run(admin, "status")
    assert code == DONE
    for words in ("m/short/chat", "stepping", "1 of 2", "5 %", "-4.2", "12 of at least 300 outcomes [x]", "12 used"):
        assert words in said
    code, said = run(admin, "status", "r", "--bucket", "m/short/chat")
    assert "0.10% – 30.00%" in said
    assert admin.asked[-1][1] == "/api/v1/rollouts?rollout=r&bucket=m%2Fshort%2Fchat"
    assert json.loads(run(admin, "status", "--json")[1]) == STATUS


def test_status_says_when_a_candidate_does_not_serve(admin: Admin) -> None:
    """That comes before what evidence is missing, for none will come."""
    row = ROW | {"not_serving": "int4/0 is unhealthy (refused)", "candidate": "int4", "baseline": "bf16"}
    admin.answers["/api/v1/rollouts"] = (200, STATUS | {"buckets": [row]})
    _, said = run(admin, "status")
    said = " ".join(said.split())
    assert "int4 does not serve: int4/0 is unhealthy (refused)" in said
    assert "at least 300 outcomes" not in said


def test_status_says_what_keeps_everything_from_moving(admin: Admin) -> None:
    """Unknown past, the brake, no bucket yet."""
    admin.answers["/api/v1/rollouts"] = (200, STATUS | {"restored": False, "brake_engaged_at": 1.0, "buckets": []})
    _, said = run(admin, "status")
    for words in ("not known yet", "brake is on", "No bucket"):
        assert words in said


def test_history_shows_who_moved_it_and_why(admin: Admin) -> None:
    """Newest first, as the API gives it."""
    admin.answers["/api/v1/rollouts/r/history"] = (200, {"events": [EVENT], "next": None})
    code, said = run(admin, "history", "r")
    assert code == DONE
    for words in ("2023-11-14 22:13:20", "stepping → rolled_back", "rolled back", "quantgate", "json tripped"):
        assert words in said
    assert json.loads(run(admin, "history", "r", "--json", "--bucket", "b")[1])["events"] == [EVENT]
    assert "bucket=b" in admin.asked[-1][1]


def test_an_incident_is_json_to_keep(admin: Admin) -> None:
    """As it is."""
    admin.answers["/api/v1/rollouts/r/incident"] = (200, {"requests": ["a"]})
    assert json.loads(run(admin, "incident", "r", "b")[1]) == {"requests": ["a"]}


@pytest.mark.parametrize("word", ["hold", "pause", "resume", "rollback", "approve", "promote", "reset"])
def test_a_command_carries_name_reason_and_token(admin: Admin, word: str) -> None:
    """Exit status 0 when it was done."""
    admin.answers[f"/api/v1/rollouts/r/{word}"] = (200, {"actor": "ann", "buckets": {"b": "holding"}})
    assert run(admin, word, "r", "b", "--reason", "why not") == (DONE, "b: holding\n")
    method, _, body, authorization = admin.asked[-1]
    assert (method, json.loads(body), authorization) == ("POST", {"bucket": "b", "reason": "why not"}, "Bearer t-1")


def test_refusals_and_failures_have_different_exit_statuses(admin: Admin) -> None:
    """1 = the rules say no; 2 = no way to ask."""
    admin.answers["/api/v1/rollouts/r/hold"] = (409, {"actor": "ann", "buckets": {"b": "refused: it is rolled back"}})
    assert run(admin, "hold", "r", "b", "-r", "x")[0] == REFUSED
    admin.answers["/api/v1/rollouts/r/hold"] = (403, {"error": {"message": "this needs the role approver"}})
    code, said = run(admin, "hold", "r", "b", "-r", "x")
    assert (code, "needs the role approver" in said) == (UNUSABLE, True)
    admin.answers["/api/v1/rollouts/r/hold"] = (200, b"not json")
    assert run(admin, "hold", "r", "b", "-r", "x")[0] == UNUSABLE
    done = CliRunner().invoke(app, ["rollout", "status", "--admin", "127.0.0.1:1"])
    assert done.exit_code == UNUSABLE
    assert "Nothing answers" in done.output
    assert CliRunner().invoke(app, ["rollout", "status", "--admin", "ftp://x"]).exit_code == UNUSABLE


def test_a_token_that_is_not_set_is_named(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is sent."""
    monkeypatch.delenv("QUANTGATE_TOKEN", raising=False)
    done = CliRunner().invoke(app, ["rollout", "hold", "r", "b", "-r", "x", "--admin", admin.address])
    assert done.exit_code == UNUSABLE
    assert "QUANTGATE_TOKEN" in done.output
    assert admin.asked == []
    admin.answers["/api/v1/rollouts"] = (200, STATUS)
    assert CliRunner().invoke(app, ["rollout", "status", "--admin", admin.address]).exit_code == DONE


def test_reading_sends_the_token_too(admin: Admin) -> None:
    """Where the policy names operators, the API asks for one."""
    admin.answers["/api/v1/rollouts"] = (200, STATUS)
    assert run(admin, "status")[0] == DONE
    assert admin.asked[-1][3] == "Bearer t-1"


def test_a_name_that_nothing_has_is_told_apart_from_nothing_yet(admin: Admin) -> None:
    """A misspelt rollout is no rollout without traffic, and no empty table."""
    admin.answers["/api/v1/rollouts"] = (200, {**STATUS, "buckets": []})
    admin.answers["/api/v1/rollouts/nope/history"] = (200, {"events": [], "next": None})
    code, said = run(admin, "status", "nope", "--bucket", "m/short")
    assert (code, "rollout nope that fits --bucket m/short" in said, "no such rollout" in said) == (DONE, True, True)
    assert "Nothing is on record for a rollout nope." in run(admin, "history", "nope")[1]


def test_without_a_token_it_is_said_where_it_is_taken_from(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway's words are for those who write headers."""
    monkeypatch.delenv("QUANTGATE_TOKEN", raising=False)
    admin.answers["/api/v1/rollouts"] = (401, {"error": {"message": "Send a token."}})
    done = CliRunner().invoke(app, ["rollout", "status", "--admin", admin.address])
    assert done.exit_code == UNUSABLE
    assert "Send a token. This command sends the token in QUANTGATE_TOKEN, which is not set." in done.output
