"""One JSON line per request: everything useful, nothing secret, and never in the way."""

import json
import os
import threading

import msgspec
import pytest

from gateway.control.access_log import AccessLog, AccessLogError, BatchWriter, head_of, lines_of, open_access_log
from gateway.core.batch import by_column
from gateway.model.outcome import Attempt, Capture, Kind, Outcome
from tests.unit.control.exchanges import batch

# What an outcome holds that a line leaves out on purpose.
LEFT_OUT = {"kind", "capture", "temperature"}
RENAMED = {
    "queue_s": "queue_ms",
    "overhead_s": "overhead_ms",
    "ttft_s": "ttft_ms",
    "first_to_last_s": "tpot_ms",
    "total_s": "total_ms",
    "longest_gap_s": "longest_gap_ms",
}


def text_of(*outcomes):
    """The lines of a batch."""
    made = batch(*outcomes)
    return lines_of(made, map(head_of, made.kind))


def line_of(outcome):
    """The line as a reader of the log sees it."""
    return json.loads(text_of(outcome))


def test_every_field_of_an_outcome_is_in_the_line_or_left_out_on_purpose(outcome):
    """A new field of the record does not silently miss the log."""
    full = outcome(
        adapter="legal",
        rollout="r",
        failure="connect",
        error_code="e",
        trace_id="t",
        constraints=("c",),
        seed=True,
        endpoint="bf16/0",
        longest_gap_s=0.25,
    )
    line = line_of(full)
    for field in (*Kind.__struct_fields__, *Outcome.__struct_fields__):
        assert (RENAMED.get(field, field) in line) is (field not in LEFT_OUT), field


def test_positions_are_not_mixed_up(outcome):
    """Each field of the line holds its own value, although the line is built by position."""
    values = {
        field.name: f"value-{field.name}"
        for field in (*msgspec.structs.fields(Kind), *msgspec.structs.fields(Outcome))
        if field.type is str and field.name not in LEFT_OUT
    }
    line = line_of(outcome(**values))
    for field, value in values.items():
        assert line[field] == value
    numbers = {"status": 418, "generation": 7, "worker": 3, "events": 8, "bytes_in": 9, "bytes_out": 10}
    numbers |= {"prompt_tokens": 11, "prompt_tokens_estimated": 12, "cached_tokens": 13, "completion_tokens": 14}
    line = line_of(outcome(**numbers))
    assert {field: line[field] for field in numbers} == numbers


def test_times_are_milliseconds_and_unknown_is_left_out(outcome):
    """No data is no field, never a zero."""
    line = line_of(outcome(queue_s=0.0, ttft_s=0.0812345, first_to_last_s=0.4, completion_tokens=11, overhead_s=-1.0))
    assert line["queue_ms"] == 0.0
    assert line["ttft_ms"] == 81.235
    assert line["tpot_ms"] == 40.0
    assert "overhead_ms" not in line
    assert "tpot_ms" not in line_of(outcome(completion_tokens=1))
    assert "prompt_tokens" not in line_of(outcome(prompt_tokens=-1))
    assert line["at"] == "2023-11-14T22:13:20.250000Z"


def test_attempts_tell_where_the_request_went(outcome):
    """In order, with each failure."""
    attempts = (Attempt("bf16", "bf16/0", 0, "connect", 0.001, 0.002), Attempt("bf16", "bf16/1", 200, "", 0.003, 0.5))
    assert line_of(outcome(attempts=attempts))["attempts"] == [
        {"pool": "bf16", "endpoint": "bf16/0", "status": 0, "started_ms": 1.0, "took_ms": 2.0, "failure": "connect"},
        {"pool": "bf16", "endpoint": "bf16/1", "status": 200, "started_ms": 3.0, "took_ms": 500.0},
    ]


@pytest.mark.parametrize("endpoint", ["bf16/0", 'odd "name"'])
def test_the_attempt_that_answered_is_told_as_any_other(outcome, endpoint):
    """Its JSON is made in part once a kind; a reader sees no difference."""
    tried = (Attempt("bf16", endpoint, 200, "", 0.0123456, 0.5),)
    made = outcome(endpoint=endpoint, attempts=tried)
    assert batch(made).attempts == [None]
    assert text_of(made) == lines_of(by_column([made]), [head_of(made.kind)])
    assert line_of(made)["attempts"] == [
        {"pool": "bf16", "endpoint": endpoint, "status": 200, "started_ms": 12.346, "took_ms": 500.0}
    ]


def test_no_captured_text_and_no_tool_call_id_is_written(outcome):
    """A capture for the quality checks passes through the same record and must not reach the log."""
    texts = Capture(b"SECRET PROMPT", b"SECRET", False)
    assert b"SECRET" not in text_of(outcome(capture=texts))


def test_a_made_up_model_name_is_cut(outcome):
    """A client can put a megabyte into ``model``."""
    assert len(line_of(outcome(model="x" * 1_000_000))["model"]) == 128


def test_lines_reach_the_file_whole_and_in_order(tmp_path, outcome):
    """Every outcome is one line of JSON, in the order of the batches."""
    path = tmp_path / "logs" / "access.jsonl"
    log, close = open_access_log(str(path))
    for turn in range(20):
        log.take_batch(batch(*(outcome(status=turn * 10 + n) for n in range(10))))
    close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["status"] for line in lines] == list(range(200))
    assert {line["event"] for line in lines} == {"request"}


def test_switched_off_nothing_is_made(tmp_path, outcome):
    """The policy may switch it off; so may the command line."""
    path = tmp_path / "access.jsonl"
    log, close = open_access_log(str(path))
    log.enabled = False
    log.take_batch(batch(outcome()))
    close()
    assert path.read_text() == ""
    assert open_access_log("off")[0] is None


def test_lost_lines_are_counted_from_zero(tmp_path):
    """The series is there before the first loss, so that its increase is one."""
    log, close = open_access_log(str(tmp_path / "a"))
    assert log.dropped.family().samples == {(): (0.0,)}
    close()


def test_a_rotated_file_is_opened_anew(tmp_path):
    """logrotate moves the file away; later lines go to a new one at the path."""
    path = tmp_path / "access.jsonl"
    writer = BatchWriter(path)
    writer._write(b"one\n")
    path.rename(tmp_path / "access.jsonl.1")
    writer._write(b"two\n")
    writer.close()
    assert (tmp_path / "access.jsonl.1").read_bytes() == b"one\n"
    assert path.read_bytes() == b"two\n"


def test_a_reader_that_stalls_costs_lines_and_nothing_else(tmp_path, outcome):
    """A full pipe neither blocks the caller nor grows memory; what is lost is counted."""
    read_end, write_end = os.pipe()
    writer = BatchWriter(None, backlog_most_bytes=10_000)
    writer._descriptor = write_end
    log = AccessLog(writer)
    for _ in range(300):
        log.take_batch(batch(*([outcome()] * 10)))
    assert writer._size <= 10_000
    lost = log.dropped.family().samples[()][0]
    assert 0 < lost < 3000
    drained = threading.Thread(target=lambda: drain(read_end))
    drained.start()
    writer.close()
    os.close(write_end)
    drained.join()


def drain(descriptor):
    """Read to the end."""
    while os.read(descriptor, 65536):
        pass
    os.close(descriptor)


def test_a_file_that_cannot_be_written_is_counted(tmp_path, outcome):
    """The log breaking must not break control."""
    writer = BatchWriter(tmp_path / "access.jsonl")
    os.close(writer._descriptor)
    writer._descriptor = os.open(os.devnull, os.O_RDONLY)
    writer._target = None
    writer._write(b"one\ntwo\n")
    assert writer.dropped == 2
    writer.close()


def test_a_path_that_cannot_be_opened_is_an_error_at_start(tmp_path):
    """Told before anything is served."""
    (tmp_path / "file").write_text("")
    with pytest.raises(AccessLogError, match=r"--access-log .*file.*; name a file"):
        open_access_log(str(tmp_path / "file" / "access.jsonl"))
