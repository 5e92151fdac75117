"""Multipart forms: fields are found, files stay untouched, forms that two parsers may read differently are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.openai import form
from gateway.errors import ApiError

BOUNDARY = b"--xyz"


def part(name: str, value: bytes, extra: str = "") -> bytes:
    """One part of a form."""
    return f'--xyz\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n\r\n'.encode() + value + b"\r\n"


END = b"--xyz--\r\n"


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        ("multipart/form-data; boundary=xyz", b"--xyz"),
        ('multipart/form-data; boundary="x y"', b"--x y"),
        ("multipart/form-data; charset=utf-8; BOUNDARY=----WebKit7MA", b"------WebKit7MA"),
    ],
)
def test_boundary(content_type: str, boundary: bytes) -> None:
    """Quoted, bare, in any case and place."""
    assert form.boundary_of(content_type) == boundary


@pytest.mark.parametrize("content_type", ["multipart/form-data", "multipart/form-data; boundary=", 'x; boundary=""'])
def test_no_boundary(content_type: str) -> None:
    """Without one there is nothing to look for."""
    with pytest.raises(ApiError) as caught:
        form.boundary_of(content_type)
    assert caught.value.code == "invalid_form"


@given(
    st.dictionaries(
        st.text("abcdefgh_", min_size=1, max_size=8),
        st.binary(max_size=64).filter(lambda value: b"\r\n--xyz" not in value),
        min_size=1,
        max_size=5,
    )
)
def test_values_are_found_as_they_are(fields: dict[str, bytes]) -> None:
    """Whatever bytes a value holds, its span is exactly those bytes."""
    body = b"".join(part(name, value) for name, value in fields.items()) + END
    found = form.spans(body, BOUNDARY)
    assert {name: body[start:end] for name, (start, end) in found.items()} == fields


def test_preamble_and_file_parts() -> None:
    """A preamble is skipped (RFC 2046 §5.1.1); a file's name does not matter, even if it looks like a field's."""
    body = (
        b"preamble\r\n"
        + part("file", b"\x00\r\n\xff", '; filename="a; name=\\"model\\".wav"\r\nContent-Type: audio/wav')
        + part("model", b"whisper")
        + END
    )
    found = form.spans(body, BOUNDARY)
    assert list(found) == ["file", "model"]
    assert form.field(body, found["model"], "model") == "whisper"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no boundary here",
        part("model", b"x"),
        b"--xyz",
        b"--xyz\r\n",
        b"--xyzz\r\n" + part("model", b"x") + END,
        b"--xyz\r\nContent-Disposition: form-data\r\n\r\nx\r\n--xyz--",
        b'--xyz\r\nContent-Disposition: form-data; name=""\r\n\r\nx\r\n--xyz--',
        b'--xyz\r\nContent-Disposition: attachment; name="model"\r\n\r\nx\r\n--xyz--',
        b'--xyz\r\nContent-Disposition: form-data; name="a"; name="model"\r\n\r\nx\r\n--xyz--',
        b"--xyz\r\nContent-Disposition: form-data; name*=utf-8''model\r\n\r\nx\r\n--xyz--",
        b'--xyz\r\nContent-Disposition: form-data; name="model\r\n\r\nx\r\n--xyz--',
        b"--xyz" + b'\r\nContent-Disposition: form-data; name="a"' * 2 + b"\r\n\r\nx\r\n--xyz--",
        b"--xyz\r\nContent-Type: text/plain\r\n\r\nx\r\n--xyz--",
        b"--xyz\r\nX: " + b"y" * 9_000 + b"\r\n\r\nx\r\n--xyz--",
        b"".join(part(f"f{index}", b"") for index in range(70)) + END,
    ],
)
def test_odd_forms_are_refused(body: bytes) -> None:
    """Cut, unnamed, doubly named, extended or endless forms are a 400."""
    with pytest.raises(ApiError) as caught:
        form.spans(body, BOUNDARY)
    assert (caught.value.status, caught.value.code) == (400, "invalid_form")


def test_a_repeated_field_is_refused() -> None:
    """Like a repeated JSON key (B109)."""
    with pytest.raises(ApiError) as caught:
        form.spans(part("model", b"cheap") + part("model", b"dear") + END, BOUNDARY)
    assert (caught.value.code, caught.value.param) == ("duplicate_key", "model")


def test_a_list_is_several_fields_of_one_name() -> None:
    """OpenAI's SDKs send ``timestamp_granularities[]`` once for each item; a list's name is no other field's."""
    body = part("stamps[]", b"word") + part("model", b"whisper") + part("stamps[]", b"segment") + END
    assert form.field(body, form.spans(body, BOUNDARY)["model"], "model") == "whisper"
    with pytest.raises(ApiError):
        form.spans(part("model", b"cheap") + part("model[]", b"x") + part("model", b"dear") + END, BOUNDARY)


def test_field_limits() -> None:
    """Fields are short text; a file under a field's name is refused, an absent field is None."""
    assert form.field(b"x", None, "model") is None
    for value in (b"x" * 5_000, b"\xff"):
        with pytest.raises(ApiError) as caught:
            form.field(value, (0, len(value)), "model")
        assert caught.value.param == "model"
