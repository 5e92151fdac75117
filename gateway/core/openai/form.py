"""Multipart forms (RFC 7578), as audio uploads use them: finds short fields without touching the file's bytes.

A form is refused where two parsers could disagree: a repeated field, an extended (``name*``) or missing name, a header
that does not parse. A name that ends in ``[]`` is a list by custom, OpenAI's SDKs send one field for each item, and the
gateway reads none of them. ``spans`` also serves the edit of ``model`` (``gateway.core.edit``).
"""

import re

from gateway.errors import ApiError

_PARTS_MOST = 64
_HEADER_MOST = 8_192
_FIELD_MOST = 4_096
_BOUNDARY = re.compile(r""";\s*boundary=(?:"([^"\\]{1,70})"|([^\s;,"]{1,70}))""", re.IGNORECASE)
_DISPOSITION = re.compile(rb"content-disposition:[ \t]*form-data[ \t]*", re.IGNORECASE)
_PARAMETER = re.compile(rb""";[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\\r\n]|\\.)*)"|([^\s;"]*))[ \t]*""")


def boundary_of(content_type: str) -> bytes:
    """The delimiter (with its leading dashes) of a ``multipart/form-data`` content type. ``ApiError`` 400 without."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        raise _bad("the Content-Type names no boundary")
    return b"--" + (found[1] or found[2]).encode("latin-1", "replace")


def spans(body: bytes, boundary: bytes) -> dict[str, tuple[int, int]]:
    """Start and end of every field's value in ``body``; of a list the last item's. ``ApiError`` 400 for a form that is
    cut, repeated or odd."""
    fields: dict[str, tuple[int, int]] = {}
    delimiter = b"\r\n" + boundary
    at = 0 if body.startswith(boundary) else body.find(delimiter) + 2
    if at == 1:
        raise _bad("its boundary does not occur in the body")
    for _ in range(_PARTS_MOST):
        at += len(boundary)
        if body.startswith(b"--", at):
            return fields
        line_end = body.find(b"\r\n", at, at + 256)
        if line_end < 0 or body[at:line_end].strip(b" \t"):
            raise _bad("a boundary line does not end")
        head_end = body.find(b"\r\n\r\n", line_end, line_end + _HEADER_MOST)
        if head_end < 0:
            raise _bad("a part's headers do not end")
        value = head_end + 4
        end = body.find(delimiter, value)
        if end < 0:
            raise _bad("the last part does not end")
        name = _name(body[line_end:head_end])
        if name in fields and not name.endswith("[]"):
            raise ApiError(
                400, "duplicate_key", f"The form names the field {name[:64]!r} more than once.", param=name[:64]
            )
        fields[name] = (value, end)
        at = end + 2
    raise _bad(f"it has more than {_PARTS_MOST} parts")


def field(body: bytes, span: tuple[int, int] | None, name: str) -> str | None:
    """A short field's text; None when the form lacks it. ``ApiError`` 400 when it is long or not UTF-8."""
    if span is None:
        return None
    start, end = span
    if end - start > _FIELD_MOST:
        raise ApiError(400, "invalid_type", f"'{name}' is longer than {_FIELD_MOST} bytes.", param=name)
    try:
        return body[start:end].decode()
    except UnicodeDecodeError:
        raise ApiError(400, "invalid_type", f"'{name}' is not UTF-8 text.", param=name) from None


def _name(head: bytes) -> str:
    lines = [line for line in head.split(b"\r\n") if line[:19].lower() == b"content-disposition"]
    found = _DISPOSITION.match(lines[0]) if len(lines) == 1 else None
    if found is None:
        raise _bad("a part has no single Content-Disposition of form-data")
    line, at, name = lines[0], found.end(), None
    while at < len(line):
        parameter = _PARAMETER.match(line, at)
        if parameter is None:
            raise _bad("a Content-Disposition does not parse")
        key = parameter[1].lower()
        if key == b"name*" or (key == b"name" and name is not None):
            raise _bad("a part is named twice or in the extended form")
        if key == b"name":
            name = parameter[2] if parameter[2] is not None else parameter[3]
        at = parameter.end()
    if not name:
        raise _bad("a part has no name")
    return name.decode("utf-8", "replace")


def _bad(reason: str) -> ApiError:
    return ApiError(400, "invalid_form", f"The multipart form cannot be read: {reason}.")
