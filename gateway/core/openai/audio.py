"""Audio: transcriptions and translations arrive as multipart forms, speech as JSON."""

from gateway.core.openai import form, gather
from gateway.core.openai.inputs import read_speech
from gateway.core.openai.parse import load
from gateway.errors import ApiError
from gateway.model.enums import Api
from gateway.model.facts import Facts, Reading, Texts

_TRUE = frozenset(("true", "1", "True"))
_FALSE = frozenset(("false", "0", "False", ""))


def read_audio(body: bytes, content_type: str, session: bytes | None) -> Reading:
    """Facts of an audio request. ``ApiError`` 400 names the field."""
    if content_type[:10].lower() != "multipart/":
        return read_speech(load(body), session)
    fields = form.spans(body, form.boundary_of(content_type))
    model = form.field(body, fields.get("model"), "model")
    if not model:
        raise ApiError(400, "missing_model", "The form names no model: add the field 'model'.", param="model")
    stream = form.field(body, fields.get("stream"), "stream") or ""
    if stream not in _TRUE and stream not in _FALSE:
        raise ApiError(400, "invalid_type", "'stream' must be true or false.", param="stream")
    prompt = form.field(body, fields.get("prompt"), "prompt") or ""
    digest, named = gather.conversation_of(session, None, None, model=model, system="", first=prompt)
    parts = (prompt,) if prompt else ()
    facts = Facts(
        api=Api.AUDIO,
        model=model,
        stream=stream in _TRUE,
        max_output_tokens=0,
        text_bytes=gather.size_bytes(list(parts)),
        messages=1,
        turns=1,
        audio=True,
        conversation=digest,
        session=named,
    )
    return Reading(facts, Texts("", "", parts))
