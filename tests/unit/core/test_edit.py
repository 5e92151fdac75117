"""Edits change what they are for and not one other byte."""

import json
import tracemalloc
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import edit
from gateway.core.openai import read
from gateway.errors import ApiError
from gateway.model.enums import Api
from gateway.model.facts import Facts

_KEYS = st.sampled_from(["model", "stream_options", "include_usage", "x", "é", 'a"b', "a\\", "model "])
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    | st.sampled_from(['"model":"x"', '\\"model\\"', "model", "stream_options"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=6,
)
_OPTIONS = st.none() | st.dictionaries(
    st.sampled_from(["include_usage", "continuous_usage_stats"]), st.sampled_from([None, True, False]), max_size=2
)
_LAYOUTS = st.sampled_from(
    [{"separators": (",", ":"), "ensure_ascii": False}, {"ensure_ascii": True}, {"indent": 1}, {"ensure_ascii": False}]
)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    """A body with a model, in any order, layout and spelling of its keys."""
    members = draw(st.dictionaries(_KEYS.filter(lambda key: key != "stream_options"), _VALUES, max_size=4))
    members["model"] = draw(st.sampled_from(["m", "org/m:1", 'q"m', "é"]))
    if draw(st.booleans()):
        members["stream_options"] = draw(_OPTIONS)
    order = draw(st.permutations(list(members)))
    value = {key: members[key] for key in order}
    text = json.dumps(value, **draw(_LAYOUTS))
    if draw(st.booleans()):
        text = text.replace('"model"', '"mod\\u0065l"').replace('"stream_options"', '"stream_\\u006fptions"')
        value = json.loads(text)
    return value, text.encode()


@given(bodies(), st.sampled_from(["new", "org/new:2", 'q"n\\', "模型"]))
def test_only_the_model_changes(body: tuple[dict[str, Any], bytes], model: str) -> None:
    """The result parses to the same object with another model, keys in the same order."""
    value, raw = body
    changed = edit.rewrite(raw, model=model)
    assert list(json.loads(changed).items()) == [
        (key, model if key == "model" else item) for key, item in value.items()
    ]


@given(bodies())
def test_every_other_byte_stays(body: tuple[dict[str, Any], bytes]) -> None:
    """Setting the model it has already, as JSON writes it, gives the bytes back; others differ in one place only."""
    value, raw = body
    changed = edit.rewrite(raw, model="NEW MODEL")
    start, end = changed.index(b'"NEW MODEL"'), changed.index(b'"NEW MODEL"') + len(b'"NEW MODEL"')
    tail = len(changed) - end
    assert raw[:start] == changed[:start]
    assert raw[len(raw) - tail :] == changed[end:]
    assert json.loads(raw[start : len(raw) - tail]) == value["model"]


@given(bodies())
def test_asking_for_usage(body: tuple[dict[str, Any], bytes]) -> None:
    """Afterwards usage is asked for, unless the client said yes or no itself; everything else is as it was."""
    value, raw = body
    asked = json.loads(edit.rewrite(raw, ask_usage=True))
    options = value.get("stream_options") or {}
    wanted = options.get("include_usage")
    assert asked.pop("stream_options") == {**options, "include_usage": True if wanted is None else wanted}
    assert asked == {key: item for key, item in value.items() if key != "stream_options"}


@given(bodies(), st.sampled_from(["new", "模型"]))
def test_both_at_once(body: tuple[dict[str, Any], bytes], model: str) -> None:
    """One pass does what two would."""
    _, raw = body
    renamed = edit.rewrite(raw, model=model)
    assert edit.rewrite(raw, model=model, ask_usage=True) == edit.rewrite(renamed, ask_usage=True)


def test_digits_and_layout_stay() -> None:
    """Integers no float can hold, odd number spellings, escapes and spacing arrive as they were sent (B106)."""
    body = (
        b' {"seed" : 18446744073709551617 , "x":[1.10, 1E5, -0,123456789012345678901234567890],\n'
        b'\t"model"\t:\r\n"m","t":"\\u00e9\\/ \\ud83d\\ude00"}\n'
    )
    changed = edit.rewrite(body, model="n", ask_usage=True)
    assert changed == body.replace(b'{"seed"', b'{"stream_options":{"include_usage":true},"seed"').replace(
        b'"m"', b'"n"'
    )


def test_a_key_in_prompt_text_is_no_key() -> None:
    """Text that looks like a member cannot draw the edit to itself."""
    prompt = 'Write {"model":"gpt", "stream_options":null} and \\"model\\":"x" please.'
    body = orjson.dumps({"messages": [{"role": "user", "content": prompt}], "model": "m"})
    changed = orjson.loads(edit.rewrite(body, model="n", ask_usage=True))
    assert changed["messages"][0]["content"] == prompt
    assert changed["model"] == "n"
    assert changed["stream_options"] == {"include_usage": True}


def test_a_nested_key_is_not_the_key() -> None:
    """Only the top level counts, whichever comes first and however either is spelled."""
    nested = b'{"tools":[{"parameters":{"model":{"type":"string"}}}],"mod\\u0065l":"m"}'
    assert edit.rewrite(nested, model="n") == nested.replace(b'"m"', b'"n"')
    both = b'{"x":{"model":"inner"},"model":"m"}'
    assert edit.rewrite(both, model="n") == both.replace(b'"m"', b'"n"')


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        (b'{"model":"m"}', b'{"stream_options":{"include_usage":true},"model":"m"}'),
        (b'{"stream_options":null,"model":"m"}', b'{"stream_options":{"include_usage":true},"model":"m"}'),
        (b'{"stream_options":{ },"model":"m"}', b'{"stream_options":{"include_usage":true },"model":"m"}'),
        (b'{"stream_options":{"a":1}}', b'{"stream_options":{"include_usage":true,"a":1}}'),
        (b'{"stream_options":{"include_usage":null}}', b'{"stream_options":{"include_usage":true}}'),
        (b'{"stream_options":{"include_usage":true}}', b'{"stream_options":{"include_usage":true}}'),
        (b'{"stream_options":{"include_usage":false}}', b'{"stream_options":{"include_usage":false}}'),
        (b"{}", b'{"stream_options":{"include_usage":true}}'),
        (b'{"x":{"stream_options":1}}', b'{"stream_options":{"include_usage":true},"x":{"stream_options":1}}'),
    ],
)
def test_usage_byte_for_byte(body: bytes, changed: bytes) -> None:
    """Where the wish is written, case by case."""
    assert edit.rewrite(body, ask_usage=True) == changed


def test_nothing_to_do_copies_nothing() -> None:
    """Without an edit, and without a model to replace, the body is the same object."""
    body = b'{"model":"m","stream_options":{"include_usage":true}}'
    assert edit.rewrite(body) is body
    assert edit.rewrite(body, ask_usage=True) is body
    assert edit.rewrite(b'{"x":1}', model="n") == b'{"x":1}'


@pytest.mark.parametrize("body", [b"", b"[]", b'"x"'])
def test_not_an_object(body: bytes) -> None:
    """Such a body was refused before; here it is a programming error."""
    with pytest.raises(ValueError, match="not a JSON object"):
        edit.rewrite(body, model="n")


def test_deep_nesting_ends_in_a_400() -> None:
    """A body that one parser took and the other cannot scan is no crash (B107)."""
    body = b'{"model":"m","model2":{"model":1},"x":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    with pytest.raises(ApiError) as caught:
        edit.rewrite(body, model="n")
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        (Facts(Api.CHAT, "m", stream=True), True),
        (Facts(Api.COMPLETIONS, "m", stream=True), True),
        (Facts(Api.CHAT, "m", stream=False), False),
        (Facts(Api.CHAT, "m", stream=True, usage_in_stream=True), False),
        (Facts(Api.CHAT, "m", stream=True, usage_in_stream=False), False),
        (Facts(Api.MESSAGES, "m", stream=True), False),
        (Facts(Api.RESPONSES, "m", stream=True), False),
    ],
)
def test_when_usage_is_asked_for(facts: Facts, wanted: bool) -> None:
    """Never without a stream (B24), never against the client's word, only where the option exists."""
    assert edit.wants_usage(facts) is wanted


def test_form() -> None:
    """A form's model is replaced in place; the file's bytes are the same."""
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="model"\r\n\r\n\x00model\xff\r\n'
        b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper\r\n--x--\r\n'
    )
    content_type = "multipart/form-data; boundary=x"
    changed = edit.rewrite_form(body, content_type, model="whisper-large")
    assert changed == body.replace(b"whisper", b"whisper-large")
    assert read(Api.AUDIO, changed, content_type).facts.model == "whisper-large"
    without = body.replace(b'name="model"', b'name="mode1"')
    assert edit.rewrite_form(without, content_type, model="n") == without


@given(bodies(), st.dictionaries(_KEYS, st.sampled_from([b"null", b"false", b"1"])), st.booleans())
def test_overwriting_sets_members_on_top_and_no_others(
    made: tuple[dict[str, Any], bytes], values: dict[str, bytes], add: bool
) -> None:
    """Present members get their value, absent ones only where they are to be added; nested ones stay."""
    members, body = made
    ascii_only = {key: value for key, value in values.items() if key.isascii() and key.isidentifier()}
    found = orjson.loads(edit.overwrite(body, ascii_only, add=ascii_only if add else ()))
    wanted = {**members}
    for key, value in ascii_only.items():
        if add or key in members:
            wanted[key] = orjson.loads(value)
    assert found == wanted


def test_what_stands_between_is_passed_over() -> None:
    """A body of millions of values costs no more memory than its bytes: none of them is made an object."""
    body = b'{"model":"m","x":[' + b'{"model":1},' * 100_000 + b'1],"stream_options":{"y":[' + b"1," * 100_000 + b"1]}}"
    tracemalloc.start()
    changed = edit.rewrite(body, model="new", ask_usage=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert changed.startswith(b'{"model":"new","x":')
    assert b'"stream_options":{"include_usage":true,"y":' in changed
    assert peak < 4 * len(body)
