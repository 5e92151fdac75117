"""What an assembled answer says about itself."""

from gateway.core.assemble import assemble
from tests.unit.core.assemble.streams import FIN, USER, assembled, chunk, stream


def test_truncation_is_known_from_what_is_missing() -> None:
    """B15: no finish_reason and no terminator, or bytes that end inside an event."""
    assert assembled(chunk({"content": "par"}), done=False).truncated
    assert not assembled(chunk({"content": "par"}), FIN, done=False).truncated
    raw = stream(chunk({"content": "par"}), FIN)
    assert assemble(USER, raw[: len(raw) // 3]).truncated
    assert assemble(USER, b'{"choices": [{"index": 0, "mess').truncated
