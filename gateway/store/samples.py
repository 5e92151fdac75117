"""Texts kept for replay: redacted, capped, sealed with AES-GCM under a key from the environment, with a time to live.

The key never comes near the database. The request id is bound into each seal, so a row cannot be passed off as another.
"""

import os
from collections.abc import Collection
from hashlib import sha256
from typing import NamedTuple

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Engine, select

from gateway.store.engine import StoreError
from gateway.store.inserting import PARAMETERS_MOST, Inserter
from gateway.store.selecting import having, newest_first
from gateway.store.tables import samples

KEY_HEADER = "x-quantgate-samples-key"
"""In which a caller of the admin API sends the key, which the gateway need not have."""
PAIR = "pair"
_NONCE_BYTES = 12


class Sample(msgspec.Struct, frozen=True):
    """What can be replayed: the request body and the answer that was given, as bytes.

    Of a shadow pair also the candidate's answer and, where it was asked for, the second run of the baseline.
    """

    api: str
    request: bytes
    answer: bytes
    candidate: bytes = b""
    noise: bytes = b""


class SampleRow(NamedTuple):
    """A sealed sample and what may be known without opening it."""

    request_id: str
    at: float
    expires_at: float
    tenant: str
    bucket: str
    pool: str
    reason: str
    sealed: bytes


class Sealer:
    """Seals and opens samples. ``secret`` is any string of at least 16 characters; its SHA-256 is the key."""

    def __init__(self, secret: str) -> None:
        if len(secret) < 16:
            raise StoreError("The key for samples is shorter than 16 characters. Use: openssl rand -hex 32")
        self._cipher = AESGCM(sha256(secret.encode()).digest())

    def seal(self, request_id: str, sample: Sample) -> bytes:
        """Encrypted and authenticated bytes."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, msgspec.msgpack.encode(sample), request_id.encode())

    def open(self, request_id: str, sealed: bytes) -> Sample:
        """The sample; ``StoreError`` if the key is another one or the row was altered."""
        try:
            plain = self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], request_id.encode())
        except InvalidTag as error:
            message = f"The sample of request {request_id} cannot be opened: another key sealed it, or it was altered."
            raise StoreError(message) from error
        return msgspec.msgpack.decode(plain, type=Sample)


def inserter(engine: Engine) -> Inserter:
    """The insert of ``SampleRow`` rows."""
    return Inserter(engine, samples, SampleRow._fields)


def find(engine: Engine, *, bucket: str = "", pool: str = "", tenant: str = "", most: int = 100) -> list[SampleRow]:
    """Sealed samples, newest first; one a request, which may have been kept by itself and as a pair."""
    found = (row for _, row in listing(engine, bucket=bucket, pool=pool, tenant=tenant, most=most))
    return list({row.request_id: row for row in found}.values())


def listing(
    engine: Engine, *, bucket: str = "", pool: str = "", tenant: str = "", before: int | None = None, most: int = 100
) -> list[tuple[int, SampleRow]]:
    """Sealed samples with their row ids, newest first, before the given id."""
    statement = having(select(samples), samples, bucket=bucket, pool=pool, tenant=tenant)
    statement = newest_first(statement, samples, before, most)
    with engine.connect() as connection:
        found = connection.execute(statement).all()
    return [(row.id, SampleRow(*(getattr(row, name) for name in SampleRow._fields))) for row in found]


def of_request(engine: Engine, request_id: str) -> SampleRow | None:
    """The sealed sample of one request."""
    rows = _rows(engine, select(samples).where(samples.c.request_id == request_id).limit(1))
    return rows[0] if rows else None


def of_requests(engine: Engine, request_ids: Collection[str]) -> list[SampleRow]:
    """The sealed samples of these requests, newest first; one a request."""
    wanted = sorted(set(request_ids))
    found: dict[int, SampleRow] = {}
    for at in range(0, len(wanted), PARAMETERS_MOST):
        some = samples.c.request_id.in_(wanted[at : at + PARAMETERS_MOST])
        with engine.connect() as connection:
            rows = connection.execute(select(samples).where(some)).all()
        found.update({row.id: SampleRow(*(getattr(row, name) for name in SampleRow._fields)) for row in rows})
    newest_first = (found[key] for key in sorted(found, reverse=True))
    return list({row.request_id: row for row in newest_first}.values())


def of_pair(engine: Engine, request_id: str) -> SampleRow | None:
    """The sealed texts of one request's shadow pair."""
    wanted = (samples.c.request_id == request_id) & (samples.c.reason == PAIR)
    rows = _rows(engine, select(samples).where(wanted).limit(1))
    return rows[0] if rows else None


def _rows(engine: Engine, statement: object) -> list[SampleRow]:
    with engine.connect() as connection:
        found = connection.execute(statement)  # type: ignore[call-overload]
        return [SampleRow(*(getattr(row, name) for name in SampleRow._fields)) for row in found]
