"""Body bytes to ``Reading``: the one entrance. Pure, so a caller may run it in a thread for a large body."""

from collections.abc import Callable
from typing import Final

from gateway.core.openai import inputs
from gateway.core.openai.audio import read_audio
from gateway.core.openai.chat import read_chat
from gateway.core.openai.messages import read_messages
from gateway.core.openai.parse import Json, load
from gateway.core.openai.responses import read_responses
from gateway.errors import ApiError
from gateway.model.enums import Api
from gateway.model.facts import Facts, Reading, Texts

_JSON: Final = "application/json"
_READERS: Final[dict[Api, Callable[[Json, bytes | None], Reading]]] = {
    Api.CHAT: read_chat,
    Api.COMPLETIONS: inputs.read_completions,
    Api.EMBEDDINGS: inputs.read_embeddings,
    Api.RESPONSES: read_responses,
    Api.MESSAGES: read_messages,
    Api.RERANK: inputs.read_rerank,
    Api.SCORE: inputs.read_score,
    Api.TOKENIZE: inputs.read_tokenize,
    Api.DETOKENIZE: inputs.read_detokenize,
}


def read(api: Api, body: bytes, content_type: str = _JSON, session: bytes | None = None) -> Reading:
    """What the request is. ``session`` is the caller's explicit conversation hint (a header), if it may give one.

    ``ApiError`` 400 names the field at fault; 415 for a form where JSON is needed. Fields that are not read, and nulls,
    pass. GET /v1/models has no body and reads as empty facts.
    """
    reader = _READERS.get(api)
    if reader is None:
        if api is Api.AUDIO:
            return read_audio(body, content_type, session)
        return Reading(Facts(api, ""), Texts())
    if content_type != _JSON and content_type[:10].lower() == "multipart/":
        raise ApiError(415, "unsupported_media_type", "This path takes a JSON body: send application/json.")
    return reader(load(body), session)
