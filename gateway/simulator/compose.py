"""From an ask to its answer: draw, spoil, cut to the limits, count.

Owns the order of these steps and the token limits. Pure: everything random comes from the request and the seed.
``service`` calls ``compose`` and ``uniforms``.
"""

from hashlib import blake2b
from random import Random

import msgspec

from gateway.simulator.answer import Answer, Call, Choice, good_choice
from gateway.simulator.ask import Ask
from gateway.simulator.config import Config
from gateway.simulator.defect import spoiled
from gateway.simulator.prose import pieces_of, prose, topics_of


def uniforms(ask: Ask, seed: int, count: int) -> list[float]:
    """``count`` numbers in [0, 1) that depend on the request and the seed alone."""
    random = Random(_key(ask, seed, b"uniform"))  # noqa: S311 - must be repeatable
    return [random.random() for _ in range(count)]


def _key(ask: Ask, seed: int, purpose: bytes) -> int:
    return int.from_bytes(blake2b(ask.identity + purpose, key=b"%d" % seed, digest_size=8).digest())


def token_limit(ask: Ask, config: Config) -> int:
    """Most tokens each choice may have: what is asked, what the operator allows, what the context leaves."""
    left = config.context_length - ask.prompt_tokens
    return max(1, min(limit for limit in (ask.max_tokens, config.max_output_tokens, left) if limit is not None))


def fitted(choice: Choice, ask: Ask, limit: int, random: Random) -> Choice:
    """The choice within stop strings and the token limit; filled up to it where the request ignores the end of text."""
    pieces, finish = choice.pieces, choice.finish
    for stop in ask.stop:
        at = "".join(pieces).find(stop) if stop else -1
        if at >= 0:
            pieces, finish = tuple(pieces_of("".join(pieces)[:at])), "stop"
    if ask.ignore_eos and not choice.calls and ask.max_tokens is not None:
        missing = limit - len(choice.reasoning) - len(pieces)
        if missing > 0:
            more = prose(random, topics_of(ask.text), missing)
            pieces = (*pieces, " " + more[0], *more[1:]) if pieces else tuple(more)
        finish = "length"
    reasoning, left = choice.reasoning[:limit], limit - len(choice.reasoning)
    calls = list[Call]()
    if left < len(pieces) or left <= 0:
        pieces, finish = pieces[: max(0, left)], "length"
    left -= len(pieces)
    for call in choice.calls:
        if left < len(call.arguments) + 1:
            finish = "length"
            if left > 1:
                calls.append(msgspec.structs.replace(call, arguments=call.arguments[: left - 1]))
            break
        calls.append(call)
        left -= len(call.arguments) + 1
    return Choice(pieces, reasoning, tuple(calls), finish, choice.structured)


def compose(ask: Ask, config: Config, fault: str | None = None) -> Answer:
    """The answer to ``ask``, spoiled by the quality fault ``fault`` if one is given."""
    limit = token_limit(ask, config)
    choices = []
    for index in range(ask.prompts * max(1, ask.n)):
        random = Random(_key(ask, config.seed, b"choice%d" % index))  # noqa: S311 - must be repeatable
        choice = good_choice(ask, config, random)
        if fault is not None:
            choice = spoiled(choice, ask, fault, limit, random)
        choices.append(fitted(choice, ask, limit, random))
    return Answer(
        choices=tuple(choices),
        prompt_tokens=ask.prompt_tokens,
        completion_tokens=sum(choice.tokens for choice in choices),
        reasoning_tokens=sum(len(choice.reasoning) for choice in choices),
        steps=max(choice.tokens for choice in choices),
    )
