"""Stored samples and the key that opens them, as the command line says, else as the policy does.

Owns where a replay finds its samples. The policy is asked because whoever replays an incident has the gateway's policy
at hand, and it names both. Called by ``quantgate replay``.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from gateway.cli.replay.given import Item, from_samples, of_requests
from gateway.cli.stored import open_database
from gateway.policy.compile import parse_document
from gateway.policy.load import load
from gateway.policy.secret import secrets_of

DEFAULT_KEY = "env:QUANTGATE_SAMPLES_KEY"
DEFAULT_STATE_DIR = Path("var/quantgate")


class Kept:
    """The samples of a gateway. Raises ``StoredError``, ``SecretError`` or ``PolicyRejectedError`` without any."""

    def __init__(
        self, config: Path | None, database: str | None, state_dir: Path | None, samples_key: str | None
    ) -> None:
        policy = parse_document(load(config).document) if config is not None else None
        reference = samples_key or (policy.records.samples.key if policy is not None else None) or DEFAULT_KEY
        self._key = secrets_of(os.environ, Path.cwd())(reference)
        if database is None and state_dir is None:
            database = policy.records.url if policy is not None else None
        self._engine = open_database(database, state_dir or DEFAULT_STATE_DIR)

    def matching(self, bucket: str, pool: str, tenant: str, most: int) -> list[Item]:
        """The newest that match, oldest first."""
        return from_samples(self._engine, self._key, bucket=bucket, pool=pool, tenant=tenant, most=most)

    def requests(self, request_ids: Sequence[str]) -> list[Item]:
        """Those of certain requests."""
        return of_requests(self._engine, self._key, request_ids)
