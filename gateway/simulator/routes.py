"""Paths of the simulated runtime, as vLLM 0.32 spells them.

Owns the table from (method, path) to what answers. ``server`` gives ``Routes.handle`` to every connection.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import orjson

from gateway.simulator import audio, identity, vectors, words
from gateway.simulator.ask import BadAskError
from gateway.simulator.connection import Connection, Request
from gateway.simulator.control import Port, answer_control
from gateway.simulator.exposition import metrics
from gateway.simulator.reading import read_ask
from gateway.simulator.service import Service, read_object

Handler = Callable[[Connection, Request], None]
_GENERATING = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completions",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
}
_GUARDED = ("/v1/", "/v2/")  # what vLLM's --api-key covers


class Routes:
    """The router of one server."""

    def __init__(self, service: Service, port: Port) -> None:
        self.service = service
        self.port = port
        table: dict[tuple[str, str], Handler] = {
            ("POST", path): self._generating(api) for path, api in _GENERATING.items()
        }
        table |= {("POST", path): self._rerank for path in ("/v1/rerank", "/v2/rerank", "/rerank")}
        table |= {("POST", path): self._score for path in ("/v1/score", "/score")}
        table |= {("POST", f"/v1/audio/{name}"): self._audio for name in ("transcriptions", "translations")}
        table |= {
            ("POST", "/v1/embeddings"): self._embeddings,
            ("POST", "/v1/messages/count_tokens"): self._count_tokens,
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/detokenize"): self._detokenize,
            ("GET", "/v1/models"): self._models,
            ("GET", "/health"): self._health,
            ("GET", "/ping"): self._health,
            ("GET", "/load"): self._load,
            ("GET", "/version"): self._version,
            ("GET", "/metrics"): self._metrics,
            ("GET", "/server_info"): self._server_info,
        }
        self.table = table
        self.paths = {path for _, path in table}

    def handle(self, connection: Connection, request: Request) -> None:
        """Answer one request; whatever the body holds, the answer is an HTTP answer."""
        path = request.path
        if path.startswith("/sim/"):
            answer_control(self.service, self.port, connection, request)
            return
        key = self.service.config.api_key
        if key is not None and path.startswith(_GUARDED) and request.headers.get("authorization") != f"Bearer {key}":
            self.service.engine.meters.statuses[401] += 1
            connection.respond(401, b'{"error":"Unauthorized"}')
            return
        handler = self.table.get((request.method, path))
        if handler is not None:
            try:
                handler(connection, request)
            except BadAskError as error:
                self.service.refuse(connection, 400, "BadRequestError", str(error), param=error.param)
        elif request.method == "GET" and path.startswith("/v1/models/"):
            self._model(connection, unquote(path.removeprefix("/v1/models/")))
        elif path == "/too-large":
            self.service.refuse(connection, 413, "BadRequestError", "Request body is too large.")
        elif path in self.paths:
            connection.respond(405, b'{"detail":"Method Not Allowed"}')
        else:
            connection.respond(404, b'{"detail":"Not Found"}')

    def _generating(self, api: str) -> Handler:
        return lambda connection, request: self.service.generate(connection, request, api)

    def _known(self, connection: Connection, body: dict[str, Any]) -> str | None:
        model = str(body.get("model") or self.service.config.model)
        if model in self.service.config.names:
            return model
        self.service.refuse(connection, 404, "NotFoundError", f"The model `{model}` does not exist.", param="model")
        return None

    def _embeddings(self, connection: Connection, request: Request) -> None:
        body, config, service = read_object(request), self.service.config, self.service
        model = self._known(connection, body)
        if model is not None:
            made = vectors.embeddings(
                {**body, "model": model},
                service.next_id(),
                int(service.wall()),
                config.embedding_dimensions,
                config.bytes_per_token,
            )
            service.compute(connection, request, "embeddings", model, made=made, content_type="application/json")

    def _rerank(self, connection: Connection, request: Request) -> None:
        body, service = read_object(request), self.service
        model = self._known(connection, body)
        if model is not None:
            made = vectors.rerank({**body, "model": model}, service.next_id(), service.config.bytes_per_token)
            service.compute(connection, request, "rerank", model, made=made, content_type="application/json")

    def _score(self, connection: Connection, request: Request) -> None:
        body, service = read_object(request), self.service
        model = self._known(connection, body)
        if model is not None:
            made = vectors.score(
                {**body, "model": model}, service.next_id(), int(service.wall()), service.config.bytes_per_token
            )
            service.compute(connection, request, "score", model, made=made, content_type="application/json")

    def _audio(self, connection: Connection, request: Request) -> None:
        recording = audio.read_form(request.headers.get("content-type", ""), request.body)
        model = self._known(connection, dict(recording.fields))
        if model is not None:
            pieces = audio.transcript(recording, self.service.config.seed)
            body, content_type = audio.transcription(recording, pieces)
            self.service.compute(
                connection, request, "audio", model, made=(body, len(pieces)), content_type=content_type
            )

    def _count_tokens(self, connection: Connection, request: Request) -> None:
        ask = read_ask("messages", read_object(request), self.service.config.bytes_per_token)
        connection.respond(200, orjson.dumps({"input_tokens": ask.prompt_tokens}))

    def _tokenize(self, connection: Connection, request: Request) -> None:
        body, config = read_object(request), self.service.config
        if self._known(connection, body) is None:
            return
        if isinstance(body.get("prompt"), str):
            ids = words.token_ids(body["prompt"], config.bytes_per_token)
        else:
            ask = read_ask("chat", body, config.bytes_per_token)
            text = "\n".join(str(message.get("content", "")) for message in body["messages"])
            ids = (words.token_ids(text, config.bytes_per_token) + [1] * ask.prompt_tokens)[: ask.prompt_tokens]
        answer = {"count": len(ids), "max_model_len": config.context_length, "tokens": ids, "token_strs": None}
        connection.respond(200, orjson.dumps(answer))

    def _detokenize(self, connection: Connection, request: Request) -> None:
        body = read_object(request)
        tokens = body.get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, int) for token in tokens):
            raise BadAskError("Field required: tokens", "tokens")
        connection.respond(200, orjson.dumps({"prompt": words.text_of(tokens)}))

    def _models(self, connection: Connection, request: Request) -> None:
        connection.respond(200, identity.models(self.service.config, self.service.started))

    def _model(self, connection: Connection, name: str) -> None:
        if name in self.service.config.names:
            entry = identity.model_entry(self.service.config, name, self.service.started)
            connection.respond(200, orjson.dumps(entry))
        else:
            self.service.refuse(connection, 404, "NotFoundError", f"The model `{name}` does not exist.", param="model")

    def _health(self, connection: Connection, request: Request) -> None:
        connection.respond(200 if self.service.config.healthy else 503, b"", "text/plain")

    def _load(self, connection: Connection, request: Request) -> None:
        engine = self.service.engine
        connection.respond(200, orjson.dumps({"server_load": len(engine.running) + len(engine.waiting)}))

    def _version(self, connection: Connection, request: Request) -> None:
        connection.respond(200, orjson.dumps({"version": self.service.config.version}))

    def _metrics(self, connection: Connection, request: Request) -> None:
        body = metrics(self.service.engine, self.service.wall())
        connection.respond(200, body, "text/plain; version=0.0.4; charset=utf-8")

    def _server_info(self, connection: Connection, request: Request) -> None:
        if self.service.config.server_info:
            connection.respond(200, identity.server_info(self.service.config))
        else:
            connection.respond(404, b'{"detail":"Not Found"}')
