"""Group 13 of the cases: hostile or odd JSON."""

import json

import pytest

from gateway.core.assemble import assemble
from tests.cases.conftest import Lane
from tests.cases.messages import DONE, FIN, OK, answer, c, completion, r0, r0s, stream

LONE = '"\\ud83d"'


def _surrogates(model: str) -> dict[str, bytes]:
    message = '"messages":[{"role":"user","content":"hi"}]'
    called = f'{{"id":"c","type":"function","function":{{"name":"f","arguments":{LONE}}}}}'
    return {
        "content": f'{{"model":"{model}","messages":[{{"role":"user","content":{LONE}}}]}}'.encode(),
        "model": f'{{"model":{LONE},{message}}}'.encode(),
        "arguments": (
            f'{{"model":"{model}","messages":[{{"role":"assistant","content":null,"tool_calls":[{called}]}}]}}'.encode()
        ),
        "key": f'{{"model":"{model}",{message},"metadata":{{{LONE}:1}}}}'.encode(),
        "low-first": f'{{"model":"{model}","messages":[{{"role":"user","content":"\\ude00\\ud83d"}}]}}'.encode(),
        "raw-utf8": f'{{"model":"{model}","messages":[{{"role":"user","content":"'.encode() + b'\xed\xa0\xbd"}]}',
    }


@pytest.mark.parametrize("place", _surrogates("m"))
def test_b104_lone_surrogate_in_a_request(lane: Lane, place: str) -> None:
    """A lone surrogate anywhere in a request is 400, said in OpenAI's shape, and never a 500."""
    reply = lane.request(_surrogates(lane.model)[place])
    assert reply.status == 400
    assert reply.error["message"]
    assert lane.first.received == []
    assert lane.request(r0(lane.model)).status == 200


def test_b104_whole_pair_is_welcome(lane: Lane) -> None:
    """An escaped pair is an emoji like any other."""
    body = b'{"model":"%b","messages":[{"role":"user","content":"\\ud83d\\ude00"}]}' % lane.model.encode()
    lane.first.play(OK)
    assert lane.request(body).status == 200
    assert b"\\ud83d\\ude00" in lane.first.received[0].body


def test_b104_surrogates_in_an_answer(lane: Lane) -> None:
    """An answer's lone or split surrogates pass as they are; the assembler joins a split pair to its emoji."""
    lone = b'data: {"id":"a","choices":[{"index":0,"delta":{"content":"\\ud83d"},"finish_reason":null}]}\n\n'
    rest = lone.replace(b"ud83d", b"ude00")
    lane.first.play(stream(lone, FIN, DONE), stream(lone, rest, FIN, DONE))
    assert lane.request(r0s(lane.model)).body == lone + FIN + DONE
    split = lane.request(r0s(lane.model))
    assert split.body == lone + rest + FIN + DONE
    assert assemble(None, split.body).choices[0].text == "😀"
    whole = json.dumps(completion()).replace("hello", "\\ud83d").encode()
    lane.first.play(answer(whole))
    assert lane.request(r0(lane.model)).body == whole
    assert {lane.outcome(number)["result"] for number in (1, 2, 3)} == {"ok"}


def test_b106_digits_arrive(lane: Lane) -> None:
    """Integers beyond 64 bits and long fractions reach the pool digit by digit."""
    numbers = b'"seed":18446744073709551617,"metadata":{"id":9007199254740993,"f":0.1000000000000000055511151231257827}'
    body = b'{"model":"%b",%b,"messages":[{"role":"user","content":"hi"}]}' % (lane.model.encode(), numbers)
    lane.first.play(OK)
    assert lane.request(body).status == 200
    assert numbers in lane.first.received[0].body


def test_b106_digits_of_an_answer(lane: Lane) -> None:
    """The same in an answer, streamed or not."""
    raw = json.dumps(completion()).replace('"created": 1', '"created": 18446744073709551617').encode()
    lane.first.play(answer(raw))
    assert lane.request(r0(lane.model)).body == raw
    assert lane.outcome()["result"] == "ok"


def _deep(model: str, depth: int, opening: str = "[", closing: str = "]") -> bytes:
    nested = opening * depth + "1" + closing * depth
    return f'{{"model":"{model}","messages":[{{"role":"user","content":"hi"}}],"x":{nested}}}'.encode()


@pytest.mark.parametrize("depth", [200, 1000, 1100, 5000, 20_000, 200_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")], ids=["array", "object"])
def test_b107_deep_nesting_in_a_request(lane: Lane, depth: int, opening: str, closing: str) -> None:
    """Deep nesting passes or is 400 in OpenAI's shape; it never costs a worker or a 500."""
    pids = lane.gateway.worker_pids()
    body = _deep(lane.model, depth, opening, closing)
    reply = lane.request(body)
    if reply.status == 200:
        assert lane.first.received[0].body == body.replace(lane.model.encode(), b"up", 1)
    else:
        assert reply.status == 400
        assert reply.error["message"]
    if depth <= 200:
        assert reply.status == 200
    assert lane.gateway.worker_pids() == pids


def test_b107_deep_tool_schema(lane: Lane) -> None:
    """A tool schema that nests 1,000 deep is refused as such, and the worker goes on."""
    schema = '{"type":"object","properties":{"a":' * 500 + '{"type":"string"}' + "}}" * 500
    tools = f'[{{"type":"function","function":{{"name":"f","parameters":{schema}}}}}]'
    body = f'{{"model":"{lane.model}","messages":[{{"role":"user","content":"hi"}}],"tools":{tools}}}'.encode()
    reply = lane.request(body)
    assert (reply.status, reply.error["code"]) == (400, "too_deep")
    assert lane.request(r0(lane.model)).status == 200


@pytest.mark.parametrize("depth", [1000, 50_000])
def test_b107_deep_nesting_in_an_answer(lane: Lane, depth: int) -> None:
    """What the gateway cannot look into it passes on; observers give up quietly."""
    nested = "[" * depth + "]" * depth
    raw = json.dumps(completion()).replace('"created": 1', f'"created": {nested}').encode()
    lane.first.play(answer(raw))
    assert lane.request(r0(lane.model)).body == raw
    strange = b'data: {"id":"a","x":%b,"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n' % nested.encode()
    lane.first.play(stream(strange, c("y"), strange, FIN, DONE))
    assert lane.request(r0s(lane.model)).body == strange + c("y") + strange + FIN + DONE
    assert {lane.outcome(number)["result"] for number in (1, 2)} == {"ok"}


DUPLICATES = {
    "model": '{"model":"%s","messages":[{"role":"user","content":"hi"}],"model":"dear"}',
    "model-same": '{"model":"%s","messages":[{"role":"user","content":"hi"}],"model":"%s"}',
    "stream": '{"model":"%s","messages":[{"role":"user","content":"hi"}],"stream":false,"stream":true}',
    "escaped": '{"model":"%s","messages":[{"role":"user","content":"hi"}],"mod\\u0065l":"dear"}',
    "tools": (
        '{"model":"%s","messages":[{"role":"user","content":"hi"}],'
        '"tools":[],"tools":[{"type":"function","function":{"name":"rm"}}]}'
    ),
    "messages": '{"model":"%s","messages":[{"role":"user","content":"hi"}],"messages":[]}',
    "max_tokens": '{"model":"%s","messages":[{"role":"user","content":"hi"}],"max_tokens":1,"max_tokens":100000}',
    "nested-name": (
        '{"model":"%s","messages":[{"role":"user","content":"hi"}],'
        '"tools":[{"type":"function","function":{"name":"safe","name":"rm"}}]}'
    ),
}


@pytest.mark.parametrize("name", DUPLICATES)
def test_b109_duplicate_keys(lane: Lane, name: str) -> None:
    """A body that two parsers could read differently is 400: routing and pool must see the same request."""
    text = DUPLICATES[name]
    body = (text % ((lane.model,) * text.count("%s"))).encode()
    reply = lane.request(body)
    assert reply.status == 400
    assert reply.error["message"]
    assert lane.first.received == []
