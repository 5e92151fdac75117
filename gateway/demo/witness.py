"""What a llama.cpp server itself says about the requests that reached it: its log and its counters, both written by the
C++ server and read here without the gateway.

The log (``ServerSpec.log_tasks``) names each request that the server computes, with its prompt's length by the model's
own tokenizer and with its sampling parameters, of which one carries the demo's number of the request (``WATERMARK``).
Text in, values out; ``gateway.demo.run`` fetches the texts.
"""

import re
from collections.abc import Iterable

import msgspec

WATERMARK = "dry_allowed_length"
"""A parameter of llama.cpp's DRY sampler. It changes nothing while ``dry_multiplier`` is 0, which is the default, and
the server writes it into its log for every request."""

FIRST_MARK = 1000
"""Marks begin above the parameter's default, so that a request without one is seen as such."""

_LINE = re.compile(
    r"^\t.*\bdry_allowed_length = (?P<mark>-?\d+)"
    r"|slot +\S+: +id +(?P<slot>\d+) \| task (?P<task>-?\d+) \| "
    r"(?:processing task|new prompt,.* task\.n_tokens = (?P<prompt>\d+)|stop processing: n_tokens = (?P<total>\d+))",
    re.MULTILINE,
)
_SAMPLE = re.compile(r"^llamacpp:(\w+) ([-+0-9.eE]+)$", re.MULTILINE)


class Sighting(msgspec.Struct, frozen=True):
    """One request as a server computed it. ``number`` -1 = it carried no mark. ``prompt_tokens``: its whole prompt,
    parts found in the cache included. ``context_tokens``: what its context held at the end, -1 while it runs.
    """

    number: int
    task: int
    prompt_tokens: int = -1
    context_tokens: int = -1


class Counters(msgspec.Struct, frozen=True):
    """A server's own totals. ``longest_context``: the most tokens that one request ever held."""

    prompt_tokens: int
    completion_tokens: int
    longest_context: int

    def since(self, before: "Counters") -> "Counters":
        """What was added after ``before``; the longest context is that of the whole life."""
        return Counters(
            self.prompt_tokens - before.prompt_tokens,
            self.completion_tokens - before.completion_tokens,
            self.longest_context,
        )


def mark_of(number: int) -> int:
    """The value of ``WATERMARK`` that says: this is request ``number``."""
    return FIRST_MARK + number


def read_sightings(log: str) -> tuple[Sighting, ...]:
    """Every request in a server's log, in the order in which it began to compute them."""
    found: dict[int, Sighting] = {}
    mark = 0
    for line in _LINE.finditer(log):
        if line["mark"] is not None:
            mark = int(line["mark"])
            continue
        task = int(line["task"])
        known = found.get(task)
        if line["prompt"] is not None and known is not None:
            found[task] = msgspec.structs.replace(known, prompt_tokens=int(line["prompt"]))
        elif line["total"] is not None and known is not None:
            found[task] = msgspec.structs.replace(known, context_tokens=int(line["total"]))
        elif known is None and line["prompt"] is None and line["total"] is None:
            # The server prints a request's sampling parameters right before it begins the request.
            found[task] = Sighting(mark - FIRST_MARK if mark >= FIRST_MARK else -1, task)
            mark = 0
    return tuple(found.values())


def finished(sightings: Iterable[Sighting]) -> bool:
    """Whether every request that the server began has ended."""
    return all(sighting.context_tokens >= 0 for sighting in sightings)


def read_counters(metrics: str) -> Counters:
    """The totals in a server's ``/metrics``. ``ValueError`` where one is missing: no number is not zero."""
    values = {name: float(value) for name, value in _SAMPLE.findall(metrics)}
    try:
        # The first counter leaves out what came from the cache.
        prompt = values["prompt_tokens_total"] + values["prompt_tokens_cached_total"]
        return Counters(int(prompt), int(values["tokens_predicted_total"]), int(values["n_tokens_max"]))
    except KeyError as error:
        raise ValueError(f"llama.cpp's /metrics has no {error.args[0]}") from None
