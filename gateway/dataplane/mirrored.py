"""One mirrored request on its way: its legs, what they gave, the pair that comes of it. State only; ``shadow`` acts."""

from gateway.core.mirror import Event
from gateway.dataplane.exchange import Exchange
from gateway.dataplane.places import Places
from gateway.model.facts import Profile
from gateway.model.pair import Leg, Pair

CANDIDATE, NOISE = "candidate", "noise"


class Job:
    """A mirrored request until all its legs have ended. ``left``: legs to wait for, the client's own among them.

    ``waiting`` and ``running`` are its legs by kind; ``held`` the bytes it keeps; ``lost`` why nothing comes of it.
    """

    __slots__ = (
        "body",
        "exchange",
        "held",
        "left",
        "legs",
        "lost",
        "places",
        "primary",
        "profile",
        "running",
        "waiting",
    )

    def __init__(self, places: Places, exchange: Exchange, profile: Profile, kinds: list[str]) -> None:
        self.places = places
        self.exchange = exchange
        self.profile = profile
        self.body = exchange.body
        self.held = len(self.body)
        self.waiting = kinds
        self.running: dict[str, Exchange] = {}
        self.legs: dict[str, Leg] = {}
        self.left = 1 + len(kinds)
        self.primary: Leg | None = None
        self.lost: Event | None = None

    def pool_of(self, kind: str) -> str:
        """Where a leg goes."""
        rule = self.places.rule
        return rule.candidate if kind == CANDIDATE else rule.baseline

    def pair(self) -> Pair:
        """What came of it, once all legs have ended and nothing was lost."""
        exchange, profile = self.exchange, self.profile
        assert self.primary is not None  # noqa: S101 - ended, and not lost
        return Pair(
            exchange.request_id,
            exchange.wall_at,
            self.places.rule.name,
            profile.tenant,
            profile.model,
            profile.bucket,
            profile.task,
            exchange.api.value,
            exchange.facts.stream,
            exchange.conversation.hex(),
            self.body,
            self.primary,
            self.legs[CANDIDATE],
            self.legs.get(NOISE),
        )
