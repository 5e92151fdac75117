"""Feedback is read strictly, and every refusal names its field."""

import pytest

from gateway.dataplane.feedback import read_feedback
from gateway.errors import ApiError


@pytest.mark.parametrize(
    ("body", "label", "score"),
    [
        (b'{"request_id":"ab-1","label":"bad"}', "bad", 0.0),
        (b'{"request_id":"ab-1","label":"thumbs_up"}', "thumbs_up", 1.0),
        (b'{"request_id":"ab-1","label":"off-topic"}', "off-topic", -1.0),
        (b'{"request_id":"ab-1","score":0.25}', "", 0.25),
        (b'{"request_id":"ab-1","label":"bad","score":1}', "bad", 1.0),
    ],
)
def test_labels_and_scores(body: bytes, label: str, score: float) -> None:
    """A known label implies a score, an own label does not, a given score wins."""
    found = read_feedback(body, "acme", 2, 5.0)
    assert (found.label, found.score, found.tenant, found.request_id, found.worker, found.at) == (
        label, score, "acme", "ab-1", 2, 5.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"{", None),
        (b"[]", None),
        (b'{"label":"bad"}', "request_id"),
        (b'{"request_id":"a b","label":"bad"}', "request_id"),
        (b'{"request_id":"a"}', "score"),
        (b'{"request_id":"a","score":1.5}', "score"),
        (b'{"request_id":"a","score":true}', "score"),
        (b'{"request_id":"a","label":"free text with spaces"}', "label"),
        (b'{"request_id":"a","label":["x"]}', "label"),
    ],
)
def test_refusals_name_the_field(body: bytes, param: str | None) -> None:
    """400, never a crash; free text is refused, because text must not come in this way."""
    with pytest.raises(ApiError) as refused:
        read_feedback(body, "acme", 0, 0.0)
    assert (refused.value.status, refused.value.param) == (400, param)
