"""A head under a keyring: what requests that share it share."""

from hashlib import sha256

import pytest

from gateway.dataplane.identity import Keyring
from gateway.dataplane.known import Known
from gateway.errors import ApiError
from gateway.model.enums import Api
from gateway.model.table import Settings, Tenant
from gateway.wire.http import Head
from tests.unit.dataplane.parts import table_of

KEY = b"sk-1"
TABLE = table_of((), tenants={"t": Tenant("t")}, keys={sha256(KEY).digest(): "t"}, settings=Settings())


def known(**fields: bytes) -> Known:
    headers = [(b"authorization", b"Bearer " + KEY)]
    headers += [(name.replace("_", "-").encode(), value) for name, value in fields.items()]
    head = Head(b"POST", b"/v1/chat/completions?a=1", headers)
    return Known(head, b"/v1/chat/completions", Api.CHAT, TABLE, Keyring(TABLE))


def test_a_plain_head() -> None:
    """What is not said has its usual meaning, and the key goes no further."""
    subject = known()
    assert (subject.path, subject.coding, subject.content_type) == (
        b"/v1/chat/completions",
        b"identity",
        "application/json",
    )
    assert (subject.session, subject.hint, subject.trace_id, subject.named, subject.is_form) == (
        None,
        None,
        "",
        b"",
        False,
    )
    assert subject.caller.tenant.name == "t"
    assert subject.pool_fields == b""


def test_fields_that_mean_something() -> None:
    """Session, coding, trace, form; hints of callers that are not trusted do not count."""
    trace = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    subject = known(
        x_quantgate_session=b"s",
        content_encoding=b" GZip ",
        content_type=b"Multipart/form-data; boundary=x",
        traceparent=trace,
        x_request_id=b"mine",
        x_quantgate_task=b"code",
    )
    assert (subject.session, subject.coding, subject.is_form, subject.named) == (b"s", b"gzip", True, b"mine.")
    assert known().named == known(x_request_id=b"").named == b""
    assert subject.trace_id == "0af7651916cd43dd8448eb211c80319c"
    assert subject.hint is None
    assert b"x-request-id" not in subject.pool_fields
    assert b"traceparent: " + trace in subject.pool_fields
    assert b"x-quantgate" not in subject.pool_fields


def test_a_trace_that_is_none_is_left_out() -> None:
    """Records hold ids only, never what else a client writes there."""
    assert known(traceparent=b"hello").trace_id == ""


def test_an_unknown_key_is_refused() -> None:
    """401, and nothing is made of the head."""
    with pytest.raises(ApiError) as refused:
        Known(Head(b"POST", b"/", [(b"authorization", b"Bearer no")]), b"/", Api.CHAT, TABLE, Keyring(TABLE))
    assert refused.value.status == 401
