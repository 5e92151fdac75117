"""What the head of a request comes to under one generation: API, caller, hints, the fields that go on to a pool.

Requests of one connection mostly share their head (``wire.repeats``), and then they share this too. Nothing in here
depends on a body or on the moment. Called by ``pipeline``.
"""

import re
from typing import Final

from gateway.dataplane.answers import fields_to_pool
from gateway.dataplane.front import cors_fields
from gateway.dataplane.identity import Caller, Keyring
from gateway.model.enums import Api
from gateway.model.table import Table
from gateway.wire.http import Head

IDENTITY: Final = b"identity"

_TRACE = re.compile(rb"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-")  # W3C trace context; only ids get into records


class Known:
    """One head under one keyring. ``hint`` is the task named by a trusted caller; ``pool_fields`` lack a request id, of
    which ``named`` is the part that the client chose."""

    __slots__ = (
        "api",
        "caller",
        "coding",
        "content_type",
        "cors",
        "hint",
        "is_form",
        "keyring",
        "named",
        "path",
        "pool_fields",
        "session",
        "trace_id",
    )

    def __init__(self, head: Head, path: bytes, api: Api, table: Table, keyring: Keyring) -> None:
        """``ApiError`` 401 for a caller that the policy does not know."""
        fields = head.fields
        self.path = path
        self.api = api
        self.keyring = keyring
        origins = table.settings.cors_origins
        self.cors = cors_fields(fields.get(b"origin"), origins) if origins else b""
        self.caller: Caller = keyring.identify(fields)
        self.coding = fields.get(b"content-encoding", IDENTITY).strip().lower()
        self.content_type = (fields.get(b"content-type") or b"application/json").decode("latin-1")
        self.is_form = self.content_type[:10].lower() == "multipart/"
        self.session = fields.get(b"x-quantgate-session")
        hint = fields.get(b"x-quantgate-task") if self.caller.tenant.trusted else None
        self.hint = hint.decode("latin-1") if hint else None
        trace = fields.get(b"traceparent")
        found = _TRACE.match(trace) if trace is not None else None
        self.trace_id = found[1].decode() if found is not None else ""
        # Runtimes know their requests by this id (vLLM: as the key of everything), so it must be unique whatever the
        # client says: two in flight under one id end each other, or an engine.
        theirs = fields.get(b"x-request-id")
        self.named = theirs + b"." if theirs else b""
        self.pool_fields = fields_to_pool(head.headers)
