"""Passive outlier ejection of one endpoint, and the budget that keeps retries from becoming a storm.

Only the pool's own faults count: answers of the 4xx class, clients that leave and our own limits are neutral, neither
failure nor success, so they can neither open nor close anything. Time is an argument.
"""

from typing import Final

CONSECUTIVE: Final = 5  # failures in a row before ejection (Envoy's default)
BASE_S: Final = 30.0  # first ejection; each further one in a row lasts one base longer
LONGEST_S: Final = 300.0
BUDGET_WINDOW_S: Final = 10.0
BUDGET_FLOOR: Final = 3  # retries that are always allowed in a window, or low traffic could never fail over


class Breaker:
    """Consecutive-failure ejection. After an ejection one failure ejects again, one success heals."""

    __slots__ = ("_ejections", "_failures", "_until")

    def __init__(self) -> None:
        self._failures = 0
        self._ejections = 0
        self._until = 0.0

    def ejected(self, now: float) -> bool:
        """Whether the endpoint is out at this moment."""
        return now < self._until

    @property
    def failing(self) -> bool:
        """Whether it was ejected and has not answered since, also once the time is over."""
        return self._ejections > 0

    def success(self) -> None:
        """An answer of the 2xx class arrived whole."""
        self._failures = 0
        self._ejections = 0
        self._until = 0.0

    def failure(self, now: float) -> bool:
        """A fault of the pool; True if it ejects the endpoint now."""
        self._failures += 1
        if self._failures < CONSECUTIVE or now < self._until:
            return False
        self._ejections += 1
        self._failures = CONSECUTIVE - 1
        self._until = now + min(BASE_S * self._ejections, LONGEST_S)
        return True


class RetryBudget:
    """Retries as a share of requests over the last one to two windows.

    A retry counts in the window in which its request began, so both leave the reckoning together. Counted when it
    happens, a wave of requests that time out would leave its retries behind in a window that has forgotten the
    requests, and whoever comes next could not fail over.
    """

    __slots__ = ("_requests", "_requests_before", "_retries", "_retries_before", "_window", "ratio")

    def __init__(self, ratio: float) -> None:
        self.ratio = ratio
        self._window = 0
        self._requests = self._requests_before = 0
        self._retries = self._retries_before = 0

    def _roll(self, now: float) -> None:
        window = int(now / BUDGET_WINDOW_S)
        if window != self._window:
            keep = window == self._window + 1
            self._requests_before = self._requests if keep else 0
            self._retries_before = self._retries if keep else 0
            self._requests = self._retries = 0
            self._window = window

    def request(self, now: float) -> None:
        """A request began."""
        self._roll(now)
        self._requests += 1

    def allow(self, now: float, began_at: float) -> bool:
        """Whether one more retry of a request that began then is within the budget; counts it if so.

        A request older than both windows is on the account of those that begin now.
        """
        self._roll(now)
        requests = self._requests + self._requests_before
        if self._retries + self._retries_before >= max(BUDGET_FLOOR, self.ratio * requests):
            return False
        if int(began_at / BUDGET_WINDOW_S) == self._window - 1:
            self._retries_before += 1
        else:
            self._retries += 1
        return True
