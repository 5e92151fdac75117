"""JSON rules of request bodies: place of syntax errors, objects only, repeated keys refused where they are read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.openai.parse import load
from gateway.errors import ApiError

_KEYS = st.sampled_from(["model", "messages", "a", "b", "name", "é", 'q"q', "x:y, z"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)
_LAYOUTS = st.sampled_from(
    [
        {"separators": (",", ":"), "ensure_ascii": False},
        {"separators": (",", ":"), "ensure_ascii": True},
        {"ensure_ascii": False},
        {"ensure_ascii": True},
        {"indent": 2, "ensure_ascii": False},
    ]
)


def refused(body: bytes) -> ApiError:
    """The error that ``load`` answers."""
    with pytest.raises(ApiError) as caught:
        load(body)
    assert caught.value.status == 400
    return caught.value


@given(st.dictionaries(_KEYS, _VALUES, max_size=4), _LAYOUTS)
def test_any_object_without_repeats_is_read(value: dict[str, Any], layout: dict[str, Any]) -> None:
    """Whatever the layout and the escapes, an honest object is accepted and read as the standard library reads it."""
    body = json.dumps(value, **layout).encode("utf-8", "surrogatepass")
    try:
        expected = json.loads(body)
    except UnicodeDecodeError:
        refused(body)
        return
    if any("\ud800" <= character <= "\udfff" for character in json.dumps(value, ensure_ascii=False)):
        return  # lone surrogates have a test of their own
    loaded = load(body)
    assert json.dumps(loaded, default=float) == json.dumps(_floats(expected))


def _floats(value: Any) -> Any:
    """Integers beyond 64 bits arrive as floats."""
    if isinstance(value, dict):
        return {key: _floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_floats(item) for item in value]
    if type(value) is int and not -(2**63) <= value < 2**64:
        return float(value)
    return value


@given(
    st.lists(st.tuples(_KEYS, _VALUES), min_size=1, max_size=4),
    st.integers(0, 3),
    _VALUES,
    st.booleans(),
    _LAYOUTS,
)
def test_a_repeated_top_level_key_is_refused(
    members: list[tuple[str, Any]], which: int, value: Any, escaped: bool, layout: dict[str, Any]
) -> None:
    """Whatever stands around it and however it is spelled, a key that occurs twice on top never passes (B109)."""
    key = members[which % len(members)][0]
    spelled = "".join(f"\\u{ord(character):04x}" for character in key) if escaped else json.dumps(key)[1:-1]
    pieces = [f"{json.dumps(name)}:{json.dumps(item, **layout)}" for name, item in members]
    body = "{" + ",".join([*pieces, f'"{spelled}": {json.dumps(value, **layout)}']) + "}"
    assert refused(body.encode("utf-8", "surrogatepass")).code in ("duplicate_key", "invalid_json")


def test_repeated_key_names_the_key() -> None:
    """The message tells which key and what to do; the code can be matched on."""
    error = refused(b'{"model":"cheap","messages":[],"model":"dear"}')
    assert (error.code, error.param) == ("duplicate_key", "model")
    assert "'model' more than once" in error.message


def test_escaped_spelling_is_seen_through() -> None:
    """``mod\\u0065l`` is the key ``model``: alone it is read, beside the plain spelling it is a repeat (B109)."""
    assert load(b'{"mod\\u0065l":"x"}') == {"model": "x"}
    assert refused(b'{"model":"cheap","mod\\u0065l":"dear"}').code == "duplicate_key"


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"m","tools":[{"type":"function","function":{"name":"safe","name":"payment_send"}}]}',
        b'{"model":"m","tools":[{"type":"function","function":{"name":"a"},"function":{"name":"b"}}]}',
        b'{"model":"m","tool_choice":{"type":"function","type":"none"}}',
        b'{"model":"m","response_format":{"type":"text","type":"json_object"}}',
        b'{"model":"m","messages":[{"role":"user","content":"a","content":"b"}]}',
        b'{"model":"m","stream_options":{"include_usage":false,"include_usage":true}}',
    ],
)
def test_repeats_inside_read_fields_are_refused(body: bytes) -> None:
    """What a constraint is decided on must have one value: names of tools, choices, formats, contents."""
    error = refused(body)
    assert error.code == "duplicate_key"
    assert error.param in ("tools", "tool_choice", "response_format", "messages", "stream_options")


def test_repeats_elsewhere_pass() -> None:
    """Vendor extensions and metadata are not read, so they are not judged."""
    assert load(b'{"model":"m","metadata":{"a":1,"a":2},"x_vendor":[{"b":1,"b":2}]}')["model"] == "m"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b'{"model":"m",}', "line 1, column 13"),
        (b'{\n"model": m}', "line 2, column 10"),
        (b'{"a":NaN}', "line 1, column 6"),
        (b'{"a":1e400}', "line 1, column 6"),
        (b'{"a":1}x', "line 1, column 8"),
    ],
)
def test_syntax_errors_name_their_place(body: bytes, place: str) -> None:
    """Invalid JSON is a 400 with line and column; NaN and infinities are not JSON (RFC 8259 §6)."""
    error = refused(body)
    assert error.code == "invalid_json"
    assert place in error.message


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"3", b"null", b"true"])
def test_only_objects(body: bytes) -> None:
    """A body that is JSON but no object is refused in words."""
    assert refused(body).code == "invalid_body"


def test_empty_body() -> None:
    """An empty body says so."""
    assert "empty" in refused(b"").message


@pytest.mark.parametrize("depth", [1_030, 20_000, 1_000_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    """Nesting cannot exhaust the stack: past the cap it is a 400 in words (B107)."""
    error = refused(b'{"x":' + b"[" * depth + b"]" * depth + b"}")
    assert error.code == "too_deep"
    assert "deep" in error.message


@pytest.mark.parametrize("depth", [250, 260, 900])
def test_moderate_nesting_passes(depth: int) -> None:
    """Deep tool schemas under the cap pass, also where the quick proof gives up."""
    assert load(b'{"x":' + b"[" * depth + b"]" * depth + b"}")["x"] is not None


def test_nesting_between_the_two_parsers_limits_is_no_crash() -> None:
    """Where only one of the two parsers can go, the answer is a 400, not an internal error."""
    for depth in range(960, 1_026, 3):
        body = b'{"x":' + b"[" * depth + b'"\\u00e9"' + b"]" * depth + b"}"
        try:
            load(body)
        except ApiError as error:
            assert error.status == 400


@pytest.mark.parametrize("spelling", [b'"\\ud83d"', b'"\\ude00"', b'"a\\ud83dz"', b'"\xed\xa0\xbd"', b'"\xff"'])
def test_lone_surrogates_and_bad_utf8_are_refused(spelling: bytes) -> None:
    """Text that cannot be encoded again is a 400, never a 500 later (B104)."""
    assert refused(b'{"model":' + spelling + b"}").code == "invalid_json"
    assert refused(b"{" + spelling + b":1}").code == "invalid_json"


def test_the_long_proof_is_bounded() -> None:
    """Masses of objects in a spelling that needs the long proof are refused; compact ones are proved at once."""
    objects = b"{}," * 60_000
    assert load(b'{"x":[' + objects + b'{"y":"\xc3\xa9"}]}')
    assert refused(b'{"x":[' + objects + b'{"y":"\\u00e9"}]}').code == "too_complex"


def test_masses_of_values_are_refused_before_they_are_made() -> None:
    """Making them would hold up every stream of the worker; a million token ids still pass."""
    ids = b"1," * 999_998 + b"1"
    assert len(load(b'{"model":"m","prompt":[' + ids + b"]}")["prompt"]) == 999_999
    assert refused(b'{"model":"m","prompt":[' + b"1," * 1_000_001 + b"1]}").code == "too_complex"


def test_huge_integers_pass() -> None:
    """Digits beyond 64 bits, even thousands of them, are no error; the forwarded bytes keep them (B106)."""
    assert load(b'{"seed":18446744073709551617,"mod\\u0065l":"m"}')["model"] == "m"
    assert load(b'{"x":' + b"7" * 300 + b',"y":"\\u00e9"}')["y"] == "é"
