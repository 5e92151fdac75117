"""Framing: streams in every shape that runtimes send, streams that break off, error objects, and labels that contradict."""

# ruff: noqa: E501 - sample texts are kept whole

from __future__ import annotations

import json
from collections.abc import Iterator

from generators.shapes import Body, ask, case, chunk, say, stream, text_stream

TEXT = "The ferry leaves at nine, and the café opens at eight. 船九点开。"
SOUND = ["error_object", "truncation", "empty", "finish_reason"]


def cases() -> Iterator[Body]:
    """Good framings, broken ones, other APIs, empty answers."""
    yield from _good_streams()
    yield from _broken_streams()
    yield from _bodies()
    yield from _other_apis()


def _good_streams() -> Iterator[Body]:
    request = {**ask("When does the ferry leave? In which language is the sign?"), "stream": True}
    spellings = {
        "plain": text_stream(TEXT),
        "crlf": text_stream(TEXT, end="\r\n\r\n"),
        "cr": text_stream(TEXT, end="\r\r"),
        "no-space": text_stream(TEXT, prefix="data:"),
        "comments": ": PROCESSING\n\n" * 3 + text_stream(TEXT),
        "bom": "\ufeff" + text_stream(TEXT),
        "ids": text_stream(TEXT, prefix="id: 7\nretry: 10\ndata: "),
        "one-event": text_stream(TEXT, size=400),
        "no-done": text_stream(TEXT, done=False),
        "no-last-blank": text_stream(TEXT).rstrip("\n"),
    }
    for name, text in spellings.items():
        yield case(f"sse/{name}", "en", request, text, passes=SOUND)
    indented = "".join(
        "data: " + json.dumps(item, indent=1).replace("\n", "\ndata: ") + "\n\n"
        for item in [chunk({"content": TEXT}), chunk({}, "stop")]
    )
    yield case("sse/multi-line", "en", request, indented + "data: [DONE]\n\n", passes=SOUND)
    usage = {
        "id": "c",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": [],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    }
    for number, extra in enumerate(
        (usage, {**usage, "choices": None}, {key: value for key, value in usage.items() if key != "choices"})
    ):
        chunks = [chunk({"role": "assistant", "content": None}), chunk({"content": TEXT}), chunk({}, "stop"), extra]
        yield case(f"sse/usage-{number}", "en", request, stream(chunks), passes=SOUND)
    two = [
        chunk({"content": "alpha beta"}, index=1),
        chunk({"content": "gamma delta"}, index=0),
        chunk({}, "stop", 1),
        chunk({}, "stop", 0),
    ]
    yield case("sse/two-choices", "en", {**request, "n": 2}, stream(two), passes=SOUND)
    thinking = [chunk({"reasoning": "Hm, nine."}), chunk({"content": "At nine."}), chunk({}, "stop")]
    yield case("sse/reasoning", "en", request, stream(thinking), passes=SOUND)
    halves = 'data: {"choices":[{"index":0,"delta":{"content":"At nine \\ud83d"}}]}\n\ndata: {"choices":[{"index":0,"delta":{"content":"\\ude00 sharp"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    yield case("sse/split-surrogates", "en", request, halves, passes=[*SOUND, "garbage"])


def _broken_streams() -> Iterator[Body]:
    request = {**ask("When does the ferry leave?"), "stream": True}
    whole = text_stream("It leaves at nine in the morning, every day.")
    yield case("sse/lost-end", "en", request, text_stream("It leaves at", finish=None, done=False), fail=["truncation"])
    yield case("sse/lost-mid-event", "en", request, whole[: len(whole) // 2], fail=["truncation"])
    yield case("sse/lost-mid-event-2", "en", request, whole[: len(whole) // 3 * 2 + 5], fail=["truncation"])
    yield case(
        "sse/length",
        "en",
        request,
        text_stream("It leaves at", "length"),
        fail=["truncation"],
        passes=["finish_reason"],
    )
    yield case(
        "sse/done-no-finish",
        "en",
        request,
        text_stream("It leaves at nine.", finish=None),
        fail=["finish_reason"],
        passes=["truncation"],
    )
    late = [chunk({"content": "At nine."}), chunk({}, "stop"), chunk({"content": " Or ten."})]
    yield case("sse/after-finish", "en", request, stream(late), fail=["finish_reason"], passes=["truncation"])
    errors = {
        "openai": {"error": {"message": "queue full", "type": "overloaded", "code": 503}},
        "flat": {"object": "error", "message": "KV cache exhausted", "type": "InternalServerError", "code": 500},
        "text": {"error": "out of memory"},
        "detail": {"detail": "model is not loaded"},
    }
    for name, error in errors.items():
        yield case(f"sse/error-{name}", "en", request, stream([error]), fail=["error_object"])
        middle = [chunk({"content": "It leaves at"}), error]
        yield case(f"sse/error-{name}-middle", "en", request, stream(middle), fail=["error_object"])
    yield case("sse/error-no-done", "en", request, stream([errors["openai"]], done=False), fail=["error_object"])
    garbled = text_stream("It leaves at nine.").replace('"delta"', '"delta', 1)
    yield case("sse/garbled-event", "en", request, garbled, fail=["error_object"])
    yield case("sse/only-done", "en", request, "data: [DONE]\n\n", fail=["empty"], unsure=["finish_reason"])
    abort = text_stream("It leaves at", "abort")
    yield case("sse/abort", "en", request, abort, fail=["truncation"])


def _bodies() -> Iterator[Body]:
    request = ask("When does the ferry leave?")
    yield case(
        "body/error",
        "en",
        request,
        {"error": {"code": 400, "message": "exceeds context", "type": "invalid_request_error"}},
        fail=["error_object"],
    )
    yield case(
        "body/error-flat",
        "en",
        request,
        {"object": "error", "message": "bad", "type": "BadRequestError", "code": 400},
        fail=["error_object"],
    )
    yield case(
        "body/error-detail", "en", request, {"detail": "Server is pinned to another model"}, fail=["error_object"]
    )
    yield case("body/no-choices", "en", request, {"object": "chat.completion", "choices": []}, fail=["error_object"])
    for number, text in enumerate(("", "   \n", None)):
        yield case(
            f"body/empty-{number}", "en", request, say(text), fail=["empty"], passes=["truncation", "finish_reason"]
        )
    for number, text in enumerate(("...", "。。。", ". . .\n", "“”", "-")):
        yield case(f"body/punctuation-{number}", "en", request, say(text), fail=["empty"])
    yield case(
        "body/reasoning-only",
        "en",
        request,
        say("", reasoning_content="The user asks about the ferry. It leaves at nine."),
        fail=["empty"],
    )
    yield case("body/reasoning-cut", "en", request, say(None, "length", reasoning="The user asks"), fail=["truncation"])
    yield case(
        "body/length",
        "en",
        request,
        say("It leaves at nine in the", "length"),
        fail=["truncation"],
        passes=["finish_reason"],
    )
    yield case("body/filtered", "en", request, say("It leaves", "content_filter"), passes=["truncation"])
    yield case("body/no-finish", "en", request, say("It leaves at nine.", None), fail=["finish_reason"])
    two = say("alpha")
    two["choices"].append({"index": 1, "message": {"role": "assistant", "content": ""}, "finish_reason": "stop"})
    yield case("body/second-empty", "en", {**request, "n": 2}, two, fail=["empty"])
    yield case("body/too-few", "en", {**request, "n": 3}, two, fail=["empty"])
    good = say("alpha beta")
    good["choices"].append({"index": 1, "message": {"role": "assistant", "content": "gamma"}, "finish_reason": "stop"})
    yield case("body/two", "en", {**request, "n": 2}, good, passes=SOUND)
    audio = say(None, audio={"id": "a", "data": "UklGRg=="})
    yield case("body/audio", "en", request, audio, passes=["empty"])
    parts = say(None)
    parts["choices"][0]["message"]["content"] = [{"type": "text", "text": "At "}, {"type": "text", "text": "nine."}]
    yield case("body/content-parts", "en", request, parts, passes=SOUND)


def _other_apis() -> Iterator[Body]:
    plain = {"model": "m", "prompt": "The ferry leaves at"}
    done = {"object": "text_completion", "choices": [{"index": 0, "text": " nine o'clock.", "finish_reason": "stop"}]}
    yield case("api/completions", "en", plain, done, passes=SOUND)
    cut = {"object": "text_completion", "choices": [{"index": 0, "text": " nine o'", "finish_reason": "length"}]}
    yield case("api/completions-cut", "en", plain, cut, fail=["truncation"])
    messages = {
        "model": "m",
        "max_tokens": 99,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Ferry?"}],
    }
    body = {
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "At nine."}],
        "stop_reason": "end_turn",
    }
    yield case("api/messages", "en", messages, body, passes=SOUND)
    yield case("api/messages-cut", "en", messages, {**body, "stop_reason": "max_tokens"}, fail=["truncation"])
    yield case("api/messages-empty", "en", messages, {**body, "content": []}, fail=["empty"])
    events = [
        {
            "type": "message_start",
            "message": {
                "model": "m",
                "role": "assistant",
                "content": [],
                "usage": {"input_tokens": 5, "output_tokens": 1},
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "At nine."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop"},
    ]
    spelled = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    streaming = {**messages, "stream": True}
    yield case("api/messages-stream", "en", streaming, "".join(spelled), passes=SOUND)
    yield case("api/messages-stream-lost", "en", streaming, "".join(spelled[:4]), fail=["truncation"])
    overloaded = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    yield case("api/messages-stream-error", "en", streaming, "".join(spelled[:3]) + overloaded, fail=["error_object"])
    asked = {"model": "m", "input": "Ferry?"}
    content = [{"type": "output_text", "text": "At nine."}]
    response = {
        "object": "response",
        "status": "completed",
        "model": "m",
        "output": [{"type": "message", "role": "assistant", "content": content}],
    }
    yield case("api/responses", "en", asked, response, passes=SOUND)
    incomplete = {**response, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    yield case("api/responses-cut", "en", asked, incomplete, fail=["truncation"])
    failed = {**response, "status": "failed", "output": [], "error": {"code": "server_error", "message": "boom"}}
    yield case("api/responses-failed", "en", asked, failed, fail=["error_object"])
    flow = [
        {
            "type": "response.created",
            "response": {"object": "response", "model": "m", "status": "in_progress", "output": []},
        },
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "message", "role": "assistant", "content": []},
        },
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "At "},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "nine."},
        {"type": "response.completed", "response": response},
    ]
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in flow]
    yield case("api/responses-stream", "en", {**asked, "stream": True}, "".join(lines), passes=SOUND)
    yield case("api/responses-stream-lost", "en", {**asked, "stream": True}, "".join(lines[:4]), fail=["truncation"])
