"""Which API a method and path mean. Paths are matched whole: no prefix guessing, so an unknown path is a plain 404."""

from gateway.model.enums import Api

PATHS = {
    "/v1/chat/completions": Api.CHAT,
    "/v1/completions": Api.COMPLETIONS,
    "/v1/embeddings": Api.EMBEDDINGS,
    "/v1/responses": Api.RESPONSES,
    "/v1/responses/input_tokens": Api.TOKENIZE,
    "/v1/messages": Api.MESSAGES,
    "/v1/messages/count_tokens": Api.TOKENIZE,
    "/v1/rerank": Api.RERANK,
    "/v2/rerank": Api.RERANK,
    "/rerank": Api.RERANK,
    "/v1/score": Api.SCORE,
    "/score": Api.SCORE,
    "/tokenize": Api.TOKENIZE,
    "/detokenize": Api.DETOKENIZE,
    "/v1/audio/transcriptions": Api.AUDIO,
    "/v1/audio/translations": Api.AUDIO,
    "/v1/audio/speech": Api.AUDIO,
}
_MODELS = "/v1/models"


def api_of(method: str, path: str) -> Api | None:
    """The API of a request, or None when no such path is served with that method. ``path`` carries no query."""
    if method == "POST":
        return PATHS.get(path)
    if method in ("GET", "HEAD") and (path == _MODELS or path.startswith("/v1/models/")):
        return Api.MODELS
    return None


def allowed_method(path: str) -> str | None:
    """The ``Allow`` value of a known path, for a 405; None for a path that nothing serves."""
    if path in PATHS:
        return "POST"
    if path == _MODELS or path.startswith("/v1/models/"):
        return "GET, HEAD"
    return None
