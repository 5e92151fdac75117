"""A request's way to its decision: path, caller, body, facts, profile, decision, admission.

Every step that refuses raises ``ApiError``, and ``_refused`` turns it into the answer and the outcome. Bodies with much
text are understood in a thread, so that nothing on the loop takes longer than a millisecond; prompt text is dropped
before the decision.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Final

from gateway.core import openai
from gateway.core.classify import classify
from gateway.dataplane import models
from gateway.dataplane.admission import Admission
from gateway.dataplane.answers import JSON
from gateway.dataplane.conversations import Conversations
from gateway.dataplane.deciding import Deciding
from gateway.dataplane.decoding import plain
from gateway.dataplane.exchange import Exchange, Taking, outcome_of
from gateway.dataplane.feedback import PATH, read_feedback
from gateway.dataplane.fleet import Generation
from gateway.dataplane.front import answer_other, cors_of
from gateway.dataplane.identity import Keyring
from gateway.dataplane.kinds import PackedKinds
from gateway.dataplane.known import IDENTITY, Known
from gateway.dataplane.outcomes import OutcomeBuffer
from gateway.dataplane.shadow import Mirror
from gateway.dataplane.sizing import Sizes, Sizing
from gateway.dataplane.unserved import RESULTS, Unserved
from gateway.errors import ApiError
from gateway.model.enums import GENERATING, Api, Result, Structured
from gateway.model.facts import Reading
from gateway.model.messages import Feedback
from gateway.wire.http import Headers, Request
from gateway.wire.server import ServerConnection

INLINE_BYTES: Final = 16 * 1024  # a body up to this size is read and counted on the loop: about a millisecond at worst
_hex: Final = hex
_OK: Final = Result.OK
_MODELS: Final = Api.MODELS
_UNSTRUCTURED: Final = Structured.NONE


class Current:
    """The generation in force with what is derived from it; replaced as a whole when control applies a new one."""

    __slots__ = ("generation", "keyring", "sizes")

    def __init__(self, generation: Generation, keyring: Keyring, sizes: Sizes) -> None:
        self.generation = generation
        self.keyring = keyring
        self.sizes = sizes


class Pipeline:
    """Handler of all client connections of a worker."""

    def __init__(
        self,
        *,
        admission: Admission,
        conversations: Conversations,
        mirror: Mirror,
        sizing: Sizing,
        executor: Executor,
        soon: Callable[[Callable[[], None]], object],
        clock: Callable[[], float],
        wall: Callable[[], float],
        rand: Callable[[], float],
        id_prefix: str,
        outcomes: OutcomeBuffer,
        on_error: Callable[[BaseException], None],
        on_feedback: Callable[[Feedback], None],
        index: int,
    ) -> None:
        self._admission = admission
        self._conversations = conversations
        self._sizing = sizing
        self._executor = executor
        self._soon = soon
        self._clock = clock
        self._wall = wall
        self._rand = rand
        self._id_prefix = id_prefix
        self._begun = 0
        self._outcomes = outcomes
        self._on_error = on_error
        self._on_feedback = on_feedback
        self._index = index
        self._kinds = PackedKinds(index)
        self._unserved = Unserved(index, self._next_id, outcomes, wall, clock)
        self._on_finish = self._ended  # bound once, not for every request
        self.current: Current | None = None
        self.deciding = Deciding(conversations)
        self.mirror = mirror

    # wire.server.Handler

    def handle(self, connection: ServerConnection, request: Request) -> Exchange | None:
        """Start to answer a request."""
        current = self.current
        if current is None:
            error = ApiError(503, "starting", "The gateway has no policy yet.", headers=(("Retry-After", "1"),))
            self._unserved.refuse(connection, error, None, request)
            return None
        known = request.head.derived
        if isinstance(known, Known) and known.keyring is current.keyring:
            api = known.api
        else:
            known, path = None, request.target.partition(b"?")[0]
            found = openai.api_of(request.method.decode("latin-1"), path.decode("latin-1"))
            if found is None:
                self._other(current, connection, request, path)
                return None
            api = found
        exchange = Exchange(
            connection,
            request,
            api=api,
            request_id=self._next_id(),
            generation=current.generation,
            wall_at=0.0,
            on_finish=self._on_finish,
        )
        try:
            exchange.wall_at, exchange.began_at = self._wall(), self._clock()
            self._begin(exchange, current, known)
        except Exception as error:  # a fault of ours may cost this request its answer, never the worker
            self.fault(exchange, error)
        return exchange

    def allow(self, headers: Headers) -> None:
        """A long body is not buffered for somebody without a key, or anybody could fill the worker's memory."""
        if self.current is not None:
            self.current.keyring.identify(dict(headers))

    def refuse(self, connection: ServerConnection, error: ApiError, headers: Headers) -> None:
        """The wire refused to read a request."""
        current = self.current
        table = current.generation.table if current is not None else None
        self._unserved.refuse(connection, error, table, dict(headers))

    # the steps

    def _other(self, current: Current, connection: ServerConnection, request: Request, path: bytes) -> None:
        table = current.generation.table
        cors = cors_of(table.settings, request.fields)
        try:
            if path == PATH and request.method == b"POST":
                self._take_feedback(request)
                connection.answer(202, JSON + cors, b'{"status":"accepted"}')
            else:
                answer_other(connection, request, path, cors)
        except ApiError as error:
            self._unserved.refuse(connection, error, table, request)

    def _next_id(self) -> str:
        self._begun += 1
        return self._id_prefix + _hex(self._begun)[2:]

    def _begin(self, exchange: Exchange, current: Current, known: Known | None) -> None:
        if known is None:
            known = self._know(exchange, current)
        exchange.known = known
        exchange.caller = known.caller
        exchange.trace_id = known.trace_id
        exchange.extra_fields = known.cors
        if known.api is _MODELS:
            self._models(exchange)
            return
        # A few compressed bytes may be a body of the longest kind.
        if known.coding == IDENTITY and len(exchange.body) <= INLINE_BYTES:
            self._understand(exchange, current.sizes)
            self._decide(exchange)
        else:
            future = self._executor.submit(self._understand, exchange, current.sizes)
            future.add_done_callback(lambda done: self._soon(lambda: self._understood(exchange, done)))

    def _know(self, exchange: Exchange, current: Current) -> Known:
        """Who calls, and what else the head says; kept for the next request with the same head."""
        head, table = exchange.request.head, exchange.generation.table
        exchange.extra_fields = cors_of(table.settings, head.fields)  # a page must be able to read: its key is unknown
        path = head.target.partition(b"?")[0]
        head.derived = known = Known(head, path, exchange.api, table, current.keyring)
        return known

    def _understood(self, exchange: Exchange, done: "Future[None]") -> None:
        if exchange.finished:
            return
        try:
            done.result()
            self._decide(exchange)
        except Exception as error:  # as in ``handle``
            self.fault(exchange, error)

    def _understand(self, exchange: Exchange, sizes: Sizes) -> None:
        """Body → facts → profile. Runs in a thread for long bodies; touches nothing but the exchange."""
        known, table = exchange.known, exchange.generation.table
        if exchange.finished:
            return  # the client left while this waited for its turn
        assert known is not None  # noqa: S101 - identified before
        caller = known.caller
        exchange.body = plain(exchange.request.body, known.coding, table.settings.max_body_bytes)
        reading: Reading = openai.read(exchange.api, exchange.body, known.content_type, session=known.session)
        facts = exchange.facts = reading.facts
        exchange.conversation = caller.conversation(facts.conversation)
        model = table.names.get(facts.model, ("", None))[0]
        exchange.sizes = sizes
        estimate = exchange.estimate = self._sizing.estimate(sizes, model, reading)
        at_least = None
        if facts.turns > 1:
            memory = self._conversations.get(exchange.conversation, model, exchange.wall_at)
            at_least = exchange.generation.length_at(memory.length) if memory is not None else None
        who, least = caller.principal, estimate.least()
        exchange.profile = classify(
            table, facts, reading.texts, who, estimate.tokens, least_tokens=least, hint=known.hint, at_least=at_least
        )

    def _decide(self, exchange: Exchange) -> None:
        self.deciding.decide(exchange)
        if exchange.api in GENERATING:
            self._capture(exchange)
        self._admission.admit(exchange)
        if exchange.generation.table.shadows and exchange.profile is not None and not exchange.finished:
            self.mirror.consider(exchange, exchange.profile)

    def _capture(self, exchange: Exchange) -> None:
        """Keep the texts of a share of the answers for the checks, as the policy says."""
        facts, evidence = exchange.facts, exchange.generation.table.evidence
        if facts.tools:
            share = evidence.tools
        elif facts.structured is not _UNSTRUCTURED:
            share = evidence.structured
        else:
            share = evidence.other
        if share >= 1.0 or (share > 0.0 and self._rand() < share):
            exchange.capture = Taking(exchange.body, evidence.answer_bytes)

    # other paths

    def _models(self, exchange: Exchange) -> None:
        table, caller = exchange.generation.table, exchange.caller
        assert caller is not None  # noqa: S101 - identified before
        rest = exchange.request.target.partition(b"?")[0].decode("latin-1").partition("/models")[2]
        one, tenant = rest.lstrip("/"), caller.tenant
        body = models.one(table, tenant, one) if one else models.listing(table, tenant)
        exchange.connection.answer(200, JSON + exchange.extra_fields, body)
        exchange.finish(Result.OK, 200)

    def _take_feedback(self, request: Request) -> None:
        current = self.current
        assert current is not None  # noqa: S101 - looked at before
        caller = current.keyring.identify(request.fields)
        self._on_feedback(read_feedback(request.body, caller.tenant.name, self._index, self._wall()))

    # ends

    def fault(self, exchange: Exchange, error: Exception) -> None:
        """Whatever a step raised ends in an answer and an outcome."""
        if isinstance(error, ApiError):
            if not exchange.finished:
                exchange.refuse(error, RESULTS.get(error.status, Result.CLIENT_ERROR))
            return
        self._on_error(error)
        if not exchange.finished:
            message = f"The gateway failed on this request. Its id is {exchange.request_id}."
            exchange.refuse(ApiError(500, "internal_error", message), Result.INTERNAL)

    def _ended(self, exchange: Exchange, result: Result, status: int) -> None:
        try:
            self._admission.leave(exchange)
            self._learn(exchange, result)
        except Exception as error:  # the request is over, and is told of whatever becomes of the rest
            self._on_error(error)
        kind = self._kinds.of(exchange, result, status)
        self._outcomes.add(outcome_of(exchange, kind, status, self._clock()))
        if exchange.job is not None:
            self.mirror.primary_ended(exchange.job, exchange, result)

    def _learn(self, exchange: Exchange, result: Result) -> None:
        """What a served request says of the next ones: sizes, and where its conversation is."""
        profile = exchange.profile
        if result is _OK and profile is not None:
            usage = exchange.usage
            estimate, sizes = exchange.estimate, exchange.sizes
            if usage.prompt_tokens > 0 and estimate is not None and sizes is not None:
                self._sizing.learn(
                    sizes,
                    profile.model,
                    exchange.facts,
                    estimate,
                    reported=usage.prompt_tokens,
                    cached=usage.cached_tokens,
                )
            if exchange.conversation and exchange.attempts:
                generation = exchange.generation
                length = generation.lengths.index(profile.length)
                served = generation.ranks[exchange.attempts[-1].pool]
                self._conversations.put(exchange.conversation, profile.model, length, served, exchange.wall_at)
