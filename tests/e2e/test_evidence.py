"""Evidence end to end: real gateway, simulated runtimes of which one breaks JSON, and everything that tells of it."""

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases.client import Client
from tests.cases.gateway import Gateway, policy, pool, wait_for, write_policy

KEY = "correct horse battery staple"
SECRET = "marmalade-xylophone-8812"
PAIRS = 60
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class Simulated:
    """A simulated runtime as a process of its own."""

    def __init__(self, folder: Path, name: str, faults: list[dict[str, Any]]) -> None:
        config = folder / f"{name}.yaml"
        config.write_text(yaml.safe_dump({"model": "up", "faults": faults, "tpot": {"constant": 0.002}}))
        command = [sys.executable, "-m", "gateway", "simulate", "--port", "0", "--config", str(config)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        self.url = f"http://{said['host']}:{said['port']}"

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(10)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose tenants each have a pool; the candidate's breaks every second JSON answer."""
    folder = tmp_path_factory.mktemp("evidence")
    (folder / "samples.key").write_text(KEY)
    broken = {"kind": "broken_json", "probability": 0.5, "draw": "sequence"}
    runtimes = [Simulated(folder, "base", []), Simulated(folder, "cand", [broken])]
    document = policy(
        {"m": {"baseline": "base"}},
        {"base": pool("m", runtimes[0].url), "cand": pool("m", runtimes[1].url, record={"image": "sim:1"})},
        [
            {"name": "candidate", "when": {"tenant": ["trying", "private"]}, "pools": ["cand"]},
            {"name": "rest", "pools": ["base"]},
        ],
        tenants={
            "normal": {"keys": [digest("sk-normal")]},
            "trying": {"keys": [digest("sk-trying")]},
            "private": {"keys": [digest("sk-private")], "capture": False},
        },
        classify={"buckets": {"by": ["model", "structured"]}},
        evidence={"check": {"structured": "100%", "tools": "100%", "other": "100%"}},
        records={"samples": {"keep": "incidents", "key": f"file:{folder / 'samples.key'}", "redact": ["xylophone"]}},
    )
    gateway = Gateway(folder, write_policy(folder / "policy.yaml", document), workers=2).start()
    drive(gateway)
    yield gateway
    gateway.stop()
    for runtime in runtimes:
        runtime.stop()


def digest(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def ask(client: Client, key: str, body: dict[str, Any], path: str = "/v1/chat/completions") -> tuple[str, Any]:
    """The request's id and its answer; a stream is read to its end."""
    reply = client.request({"model": "m", **body}, path=path, headers=[("Authorization", f"Bearer {key}")])
    request_id = reply.header("x-quantgate-request-id") or ""
    if body.get("stream"):
        reply.payloads()
        return request_id, None
    return request_id, reply.json


def structured(index: int) -> dict[str, Any]:
    form = {"type": "json_schema", "json_schema": {"name": "p", "schema": SCHEMA}}
    messages = [{"role": "user", "content": f"Person number {index}, {SECRET}, as JSON."}]
    return {"messages": messages, "response_format": form, "stream": index % 2 == 0}


IDS: dict[str, str] = {}


def drive(gateway: Gateway) -> None:
    """The same traffic to both pools, a tool that fails, feedback, and a tenant that opted out."""
    with gateway.connect() as client:
        for index in range(PAIRS):
            for key in ("sk-normal", "sk-trying"):
                IDS[f"{key}-{index}"], _ = ask(client, key, structured(index))
        for index in range(12):
            IDS[f"private-{index}"], _ = ask(client, "sk-private", structured(index))
        turns: list[dict[str, Any]] = [{"role": "user", "content": f"Weather in Oslo? {SECRET}"}]
        IDS["called"], answer = ask(client, "sk-normal", {"messages": turns, "tools": [WEATHER]})
        message = answer["choices"][0]["message"]
        turns.append({"role": "assistant", "content": None, "tool_calls": message["tool_calls"]})
        turns.append({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "Error: no such city"})
        ask(client, "sk-normal", {"messages": turns, "tools": [WEATHER]})
        feedback = [("sk-normal-0", "sk-normal", "good"), ("sk-trying-0", "sk-trying", "bad")]
        feedback.append(("sk-normal-1", "sk-trying", "bad"))  # another tenant's answer
        for name, key, label in feedback:
            ask(client, key, {"request_id": IDS[name], "label": label}, "/v1/feedback")
    total = 2 * PAIRS + 12 + 2
    wait_for(lambda: gateway.total("quantgate_records_written_total", table="requests") >= total, "all records", 60)
    wait_for(lambda: gateway.total("quantgate_records_written_total", table="aftermath") >= 3, "the aftermath", 20)


def command(*arguments: str, code: int = 0, **environment: str) -> str:
    """Output of a quantgate command."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=120,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def figure(report: Any, metric: str) -> Any:
    section = next(found for found in report["sections"] if found["bucket"] == "m/json_schema")
    return next(column for column in section["columns"] if column["pool"] == "cand")["figures"][metric]


def test_every_request_left_one_record(served: Gateway) -> None:
    """Paged to the end over the admin API: each id once, with its pool and what the checks said."""
    seen: list[dict[str, Any]] = []
    path = "/api/v1/records?limit=50"
    while True:
        page = served.admin(path)
        seen += page["records"]
        if page["next_cursor"] is None:
            break
        path = f"/api/v1/records?limit=50&cursor={page['next_cursor']}"
    assert len(seen) == len({record["request_id"] for record in seen}) == 2 * PAIRS + 14
    assert {record["request_id"] for record in seen} >= set(IDS.values())
    assert all(record["score"] is not None for record in seen)
    streams = [record for record in seen if record["stream"] and record["pool"] == "base"]
    paced = [record for record in streams if record["first_to_last_s"] is not None]  # a busy machine may join events
    assert paced and all(0 <= record["longest_gap_s"] <= record["first_to_last_s"] for record in paced)
    assert all(record["cached_tokens"] is not None for record in seen)


def test_the_report_says_that_the_candidate_breaks_json(served: Gateway, tmp_path: Path) -> None:
    """Worse by its interval, from the running gateway and from its database alike; the page is whole."""
    address = f"127.0.0.1:{served.admin_port}"
    live = json.loads(command("report", "--admin", address, "-f", "json", "--baseline", "base"))
    stored = json.loads(command("report", "--state-dir", str(served.folder / "state"), "-f", "json"))
    assert live["baselines"] == {"m": "base"}
    for metric in ("format_error", "quality"):
        assert figure(live, metric)["comparison"]["verdict"] == "worse"
    assert 0.2 < figure(live, "format_error")["estimate"]["value"] < 0.8
    both = json.loads(
        command("report", "--state-dir", str(served.folder / "state"), "-f", "json", "--baseline", "base")
    )
    assert figure(both, "format_error") == figure(live, "format_error")
    assert stored["requests"] == live["requests"] == 2 * PAIRS + 14
    page = tmp_path / "report.html"
    command("report", "--admin", address, "--baseline", "base", "-f", "html", "-o", str(page))
    assert page.read_text().rstrip().endswith("</html>")


def test_what_became_of_an_answer_is_joined_to_it(served: Gateway) -> None:
    """The failed tool counts against the answer that called it; feedback only from the tenant that got the answer."""
    called = served.admin(f"/api/v1/records/{IDS['called']}")
    assert [later["kind"] for later in called["aftermath"]] == ["tool_error"]
    good = served.admin(f"/api/v1/records/{IDS['sk-normal-0']}")
    assert [(later["kind"], later["score"]) for later in good["aftermath"]] == [("feedback", 1.0)]
    assert served.admin(f"/api/v1/records/{IDS['sk-normal-1']}")["aftermath"] == []
    wait_for(lambda: served.total("quantgate_feedback_ignored_total", why="other_tenant") == 1, "it is counted")
    assert good["deployment_record"]["pool"] == "base"


def test_only_incidents_are_kept_and_nothing_of_who_opted_out(served: Gateway) -> None:
    """Redacted and sealed; without the key nobody sees a text."""
    kept = served.admin("/api/v1/samples?limit=1000")["samples"]
    assert kept
    assert {(row["tenant"], row["pool"], row["reason"]) for row in kept} == {("trying", "cand", "incident")}
    request_id = kept[0]["request_id"]
    sealed = served.admin(f"/api/v1/samples/{request_id}")
    assert "request" not in sealed
    with Client(served.admin_port) as client:
        headers = [("x-quantgate-samples-key", KEY)]
        opened = client.request(None, method="GET", path=f"/api/v1/samples/{request_id}", headers=headers).json
    assert "marmalade-[redacted]-8812" in opened["request"]["text"]


def test_no_text_reaches_records_logs_or_metrics(served: Gateway) -> None:
    """The prompts' secret is in no file of the gateway and in no answer of the admin port."""
    state = served.folder / "state"
    with sqlite3.connect(state / "records.sqlite") as database:
        dump = database.serialize()
    assert SECRET.encode() not in dump
    for file in (served.access_log, served.log):
        assert SECRET.encode() not in file.read_bytes()
    metrics = str(served.metrics())
    assert SECRET not in metrics and "marmalade" not in metrics


def test_deployments_and_latency_are_told(served: Gateway) -> None:
    """`quantgate record` shows what is declared and what is missing; latency has every pool."""
    address = f"127.0.0.1:{served.admin_port}"
    found = {one["pool"]: one for one in json.loads(command("record", "--admin", address, "--json"))}
    entries = {f"{entry['group']}: {entry['name']}": entry for entry in found["cand"]["entries"]}
    assert entries["system: image"]["declared"] == "sim:1"
    assert "checked answers" in entries["evaluation: buckets with evidence"]["declared"]
    assert "model: hash" in found["cand"]["missing"]
    rows = served.admin("/api/v1/latency")["latency"]
    assert {(row["bucket"], row["pool"]) for row in rows} >= {("m/json_schema", "base"), ("m/json_schema", "cand")}
    assert all(row["prefix_cache"]["requests"] == row["total"]["count"] for row in rows)


def test_samples_are_replayed_to_chosen_pools(served: Gateway, tmp_path: Path) -> None:
    """The incidents go to both pools again and are compared; only with the key, only to pools that were named."""
    state = str(served.folder / "state")
    out = tmp_path / "out.jsonl"
    arguments = ["replay", "--samples", "--state-dir", state, "--config", str(served.config), "--to", "base,cand"]
    command(*arguments, "--samples-key", "env:NO_KEY_HERE", code=2)
    told = json.loads(command(*arguments, "--noise", "--json", "-o", str(out), QUANTGATE_SAMPLES_KEY=KEY))
    base, cand, again = told["pools"]
    assert base["sent"] == cand["sent"] == again["sent"] > 0
    assert cand["noise"]["value"] == 1.0
    assert cand["agreement"]["value"] < 1.0 and cand["checks_failed"]["format_error"]["value"] > 0
    assert len(out.read_text().splitlines()) == base["sent"]


def test_evidence_survives_the_death_of_control(served: Gateway) -> None:
    """Outcomes of requests that were served meanwhile wait in the workers and are recorded by the next control."""
    before = len(served.admin("/api/v1/records?limit=1000")["records"])
    os.kill(served.pids["control"], signal.SIGKILL)
    with served.connect() as client:
        ids = [ask(client, "sk-normal", structured(index))[0] for index in range(20)]

    def recorded() -> bool:
        try:
            found = served.admin("/api/v1/records?limit=1000").get("records", [])
        except (OSError, AssertionError, ValueError):
            return False
        return set(ids) <= {record["request_id"] for record in found} and len(found) == before + 20

    wait_for(lambda: recorded() or None, "the new control has the records", 60)
