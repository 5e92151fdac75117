"""A message that comes again is read as the parser would read it, and everything else is left to the parser."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.http import Request
from gateway.wire.reading import ReadLimits, RequestReader
from gateway.wire.repeats import Learning, Template, secret_span, template_of

HEAD = b"POST /v1/x HTTP/1.1\r\nHost: g\r\nContent-Length: %d\r\nAuthorization: Bearer k\r\n\r\n"


def message(body: bytes, head: bytes = HEAD) -> bytes:
    return head % len(body) + body


def template(data: bytes, *, secret: bool = True) -> Template:
    made = template_of(data, secret=secret)
    assert made is not None
    return made


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_the_same_head_with_another_length_needs_no_parser(first: bytes, second: bytes) -> None:
    """Whatever the bodies are: the second begins where its head ends."""
    data = message(second)
    assert data[template(message(first)).body_at(data) :] == second


@given(st.integers(0, 200), st.integers(0, 255), st.binary(max_size=20))
def test_any_other_byte_in_the_head_is_for_the_parser(place: int, byte: int, body: bytes) -> None:
    """One byte of the head changed: the template takes it only if all that changed is a digit of a true length."""
    data = bytearray(message(body))
    head_bytes = len(data) - len(body)
    at = place % head_bytes
    changed = data[at] != byte
    data[at] = byte
    for secret in (True, False):
        found = template(message(b"abc"), secret=secret).body_at(bytes(data))
        assert found == (-1 if changed else head_bytes)


@pytest.mark.parametrize(
    "data",
    [
        message(b"hello")[:-1],
        message(b"hello") + b"x",
        message(b"hello") * 2,
        message(b"")[:-4],
        HEAD.replace(b"%d", b"+5") + b"hello",
        HEAD.replace(b"%d", b"5_0") + b"x" * 50,
        HEAD.replace(b"%d", b"") + b"hello",
        HEAD.replace(b"%d", b"1234567890") + b"hello",
        b"",
        b"\r\n" + message(b"hello"),
    ],
)
def test_what_is_not_one_whole_message_is_for_the_parser(data: bytes) -> None:
    """Bodies in pieces, two messages in one read, lengths that are no plain digits."""
    assert template(message(b"abc"), secret=True).body_at(data) == -1
    assert template(message(b"abc"), secret=False).body_at(data) == -1


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nHost: g\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 0\r\ncontent-length: 0\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 0 \r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 0\r\n",
        b"POST / HTTP/1.1\r\nContent-Length-Extra: 0\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_heads_without_one_plain_length_have_no_template(head: bytes) -> None:
    """No length, two of them, blanks behind it, an unfinished head, a name that only begins alike."""
    assert template_of(head, secret=True) is None


def test_learning_gives_up_on_a_peer_that_never_repeats_itself() -> None:
    """Each head with a number of its own: looking for templates stops, and is tried again now and then."""
    subject = Learning(secret=False)
    learnt = [subject.learn(b"POST /%d HTTP/1.1\r\nContent-Length: 0\r\n\r\n" % number) for number in range(129)]
    assert learnt[:8] == [True] * 8
    assert learnt[8:63] == [False] * 55
    assert sum(learnt[8:]) == 2
    subject.hit()
    assert subject.learn(message(b""))


HEADS = (
    HEAD,
    HEAD.replace(b"Bearer k", b"Bearer other"),
    b"POST /v1/y HTTP/1.1\r\ncontent-length:%d\r\nHost: g\r\n\r\n",
    b"POST /v1/z HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Length: %d\r\n\r\n",
)


@given(
    st.lists(st.tuples(st.sampled_from(HEADS[:3]), st.binary(max_size=60)), max_size=12),
    st.lists(st.integers(1, 200), max_size=30),
)
def test_a_reader_with_templates_gives_what_a_parser_gives(
    messages: list[tuple[bytes, bytes]], sizes: list[int]
) -> None:
    """Requests with few heads, one read each or cut anywhere: the same requests in the same order."""
    data = [message(body, head) for head, body in messages]
    whole = b"".join(data)
    cuts, at = [], 0
    for size in [*sizes, len(whole) or 1]:
        cuts.append(whole[at : at + size])
        at += size
    expected = [body for _, body in messages]
    for reads in (data, cuts):
        got: list[Request] = []
        reader = RequestReader(ReadLimits(), lambda: 1.0, whole=got.append, go_on=lambda: None, leave=lambda _: None)
        for read in reads:
            again = reader.again(read)
            if again is not None:
                got.append(again)
            elif read:
                reader.feed(read)
        assert [request.body for request in got] == expected
        for request, (head, _) in zip(got, messages, strict=True):
            assert request.target == head.split(b" ")[1]
            assert request.fields.get(b"authorization") == (
                b"Bearer other" if b"other" in head else b"Bearer k" if b"Bearer" in head else None
            )
            assert b"content-length" not in request.fields


def test_a_limit_that_has_shrunk_holds_for_messages_that_come_again() -> None:
    """The body limit follows the policy: what is over it goes to the parser, which refuses it."""
    limits = ReadLimits()
    got: list[Request] = []
    reader = RequestReader(limits, lambda: 1.0, whole=got.append, go_on=lambda: None, leave=lambda _: None)
    reader.feed(message(b"x" * 50))
    assert reader.again(message(b"x" * 60)) is not None
    limits.max_body_bytes = 55
    assert reader.again(message(b"x" * 60)) is None
    assert reader.again(message(b"x" * 55)) is not None


def test_nothing_is_read_again_behind_a_request_that_closes() -> None:
    """After Connection: close the parser refuses what follows, and the template does not step in for it."""
    reader = RequestReader(ReadLimits(), lambda: 1.0, whole=lambda _: None, go_on=lambda: None, leave=lambda _: None)
    reader.feed(message(b"a"))
    reader.feed(message(b"b", HEADS[3]))
    assert reader.again(message(b"c")) is None


@pytest.mark.parametrize(
    ("head", "secret"),
    [
        (b"POST /v1/x HTTP/1.1\r\nHost: g\r\nAccept: */*\r\nX-Stainless-Lang: py\r\nContent-Length: ", b""),
        (b"GET / HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer k\r\nUser-Agent: u\r\n", b"Authorization: Bearer k"),
        (b"GET / HTTP/1.1\r\nX-A: 1\r\nHost: g\r\nx-b: 2\r\nAccept: */*", b"X-A: 1\r\nHost: g\r\nx-b: 2"),
        (b"GET /?key=k HTTP/1.1\r\nHost: g", b"GET /?key=k HTTP/1.1"),
        (b"\r\nHost: g\r\nX-Api-Key: k\r\n\r\n", b"X-Api-Key: k"),
        (b"\r\n\r\n", b""),
        (b"GET / HTTP/1.1\r\nHosts: g", b"Hosts: g"),
    ],
)
def test_lines_that_may_hold_a_secret_are_found(head: bytes, secret: bytes) -> None:
    """Whatever is not known to hold none: queries, keys, fields of somebody's own; with all that is between them."""
    first, last = secret_span(head)
    assert head[first:last] == secret
