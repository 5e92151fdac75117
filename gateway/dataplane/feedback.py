"""``POST /v1/feedback``: an application's word on one of its answers, by the request id it got with it.

Checked here, judged in control: whether the request is known, and whether it was this tenant's, only control can tell.
"""

import re

import orjson

from gateway.errors import ApiError
from gateway.model.messages import Feedback

PATH = b"/v1/feedback"
LABEL_MOST = 64
_ID = re.compile(r"[0-9A-Za-z_.:-]{1,64}")
_LABEL = re.compile(r"[0-9A-Za-z_.:+-]{1,64}")
GOOD = frozenset({"good", "up", "accepted", "thumbs_up"})
BAD = frozenset({"bad", "down", "rejected", "thumbs_down"})


def read_feedback(body: bytes, tenant: str, worker: int, wall_s: float) -> Feedback:
    """The body ``{"request_id": …, "label": …, "score": 0…1}``, label or score or both. 400 names the field."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ApiError(400, "invalid_json", f"The body is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise ApiError(400, "invalid_body", "The body must be a JSON object.")
    request_id, label, score = found.get("request_id"), found.get("label", ""), found.get("score")
    if not isinstance(request_id, str) or not _ID.fullmatch(request_id):
        message = "request_id must be the value of an answer's x-quantgate-request-id header."
        raise ApiError(400, "invalid_value", message, param="request_id")
    if not isinstance(label, str) or (label and not _LABEL.fullmatch(label)):
        message = f"label must be a word of at most {LABEL_MOST} letters, digits and _.:+-."
        raise ApiError(400, "invalid_value", message, param="label")
    if score is None:
        if not label:
            raise ApiError(400, "invalid_value", "Give a label or a score between 0 and 1.", param="score")
        score = 1.0 if label in GOOD else 0.0 if label in BAD else -1.0
    elif isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise ApiError(400, "invalid_value", "score must be a number between 0 (bad) and 1 (good).", param="score")
    return Feedback(worker, wall_s, tenant, request_id, label, float(score))
