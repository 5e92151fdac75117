"""The access log is read as it is written, and the table adds nothing to it."""

import pytest

from gateway.control.access_log import AccessLine, KindFields
from gateway.demo.access import Entry, read_access_log, rows_of
from tests.unit.demo.accounts import good_evidence

LINES = (
    b'{"at":"2026-11-29T16:55:30Z","event":"request","request_id":"b","worker":1,"generation":2,"api":"chat",'
    b'"status":200,"result":"ok","total_ms":1353.7,"bytes_in":5,"bytes_out":6,"tenant":"acme","bucket":"short/chat/high",'
    b'"privilege":"high","rule":"tools","constraints":["c"],"pool":"bf16","attempts":[{"pool":"bf16","endpoint":"bf16/0",'
    b'"status":200,"started_ms":0.6,"took_ms":9.5}],"ttft_ms":521.9,"tpot_ms":36.1,"prompt_tokens":40,'
    b'"completion_tokens":24,"stream":true}\n'
    b'{"at":"2026-11-29T16:55:29Z","event":"request","request_id":"a","worker":0,"generation":1,"api":"chat",'
    b'"status":401,"result":"unauthorized","total_ms":0.2,"bytes_in":5,"bytes_out":6}\n'
    b'{"at":"2026-11-29T16:55'
)


def test_whole_lines_are_read_in_the_order_of_arrival() -> None:
    """A line that is still being written is left; what a line leaves out is unknown."""
    first, second = read_access_log(LINES)
    assert (first.request_id, first.status, first.pool, first.attempts, first.prompt_tokens) == ("a", 401, "", (), -1)
    assert (second.generation, second.constraints, second.attempts[0].pool) == (2, ("c",), "bf16")


def test_an_empty_log() -> None:
    """No line yet."""
    assert read_access_log(b"") == ()


def test_every_field_is_one_that_the_gateway_writes() -> None:
    """A field that the gateway renames would silently read as unknown here."""
    written = {*AccessLine.__struct_fields__, *KindFields.__struct_fields__}
    assert set(Entry.__struct_fields__) <= written


def test_rows_add_up() -> None:
    """Requests and tokens of the rows are those of the answered lines; refusals are in no row."""
    entries = good_evidence().entries
    rows = rows_of(entries)
    answered = [entry for entry in entries if entry.result == "ok"]
    assert sum(row.requests for row in rows) == len(answered)
    assert sum(row.prompt_tokens for row in rows) == sum(entry.prompt_tokens for entry in answered)
    assert sum(row.completion_tokens for row in rows) == sum(entry.completion_tokens for entry in answered)
    assert {row.narrowed_by for row in rows} == {(), ("privileged",), ("long",)}


def test_times_that_were_not_measured_are_none() -> None:
    """TPOT is of streams only; a group without any has no number, not zero."""
    rows = {(row.pool, row.rule): row for row in rows_of(good_evidence().entries)}
    assert rows["q4", "talk"].tpot_ms == pytest.approx(20.0)
    assert rows["q8", "exact"].tpot_ms == -1.0
    assert rows["q8", "exact"].ttft_ms == rows["q8", "exact"].ttft_most_ms == pytest.approx(400.0)
