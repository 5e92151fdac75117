"""An incident as one bundle: the decision, its requests, which of their texts were kept, and the line to replay them.

Owns the bundle's shape and the line. The line names where the gateway itself finds policy and samples, so it runs as it
stands on the gateway's host with the samples' key at hand. Called by ``api_rollouts`` in a thread.
"""

import shlex
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson
from sqlalchemy import Engine

from gateway.core.rollout import Standing
from gateway.store import samples
from gateway.store.rollouts import EventRow

INCIDENTS = ("fail", "incident", "beside", "rollback")


class Places(NamedTuple):
    """Where the gateway has its policy and its state. ``own_database``: records are a file in the state directory."""

    config: Path
    state_dir: Path
    own_database: bool = True


def bundle_of(database: Engine, row: EventRow, standing: Standing | None, places: Places) -> dict[str, Any]:
    """What is to be kept of an incident."""
    evidence = orjson.loads(row.evidence)
    ids = sorted({one for found in evidence.get("requests", {}).values() for one in found})
    kept = {sample.request_id for sample in samples.of_requests(database, ids)}
    replayable = [one for one in ids if one in kept]
    return {
        "event": msgspec.to_builtins(row) | {"evidence": evidence},
        "requests": ids,
        "replayable": replayable,
        "replay": replay_line(replayable, standing, places) if replayable and standing is not None else "",
    }


def replay_line(request_ids: list[str], standing: Standing, places: Places) -> str:
    """The command that sends these requests to both pools again, and to the baseline twice."""
    words = ["quantgate", "replay", "--requests", ",".join(request_ids), "--config", str(places.config)]
    words += ["--to", f"{standing.baseline},{standing.candidate}", "--noise"]
    if places.own_database:
        words += ["--state-dir", str(places.state_dir)]
    return shlex.join(words)
