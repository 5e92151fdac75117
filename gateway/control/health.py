"""From single health answers to a state that does not flap. Pure; one ``HealthTrack`` per endpoint.

Called by ``control.prober``. Thresholds follow what peers use (three failures out, two successes back in); an endpoint
that says it is loading is believed at once, in both directions.
"""

from gateway.model.enums import EndpointState
from gateway.runtimes.adapter import HealthState

FAILURES_OUT = 3
SUCCESSES_IN = 2


class HealthTrack:
    """Counts answers. ``state`` starts as UNKNOWN (offered): a gateway that has just started serves."""

    def __init__(self, state: EndpointState = EndpointState.UNKNOWN) -> None:
        self.state = state
        self.failures = 0
        self._successes = 0

    @property
    def settled(self) -> bool:
        """Nothing suggests that the state is about to change; probing may be slow."""
        return self.state is EndpointState.READY and self.failures == 0

    def step(self, said: HealthState) -> EndpointState:
        """Take one answer; the state after it."""
        if said is HealthState.READY:
            self.failures = 0
            self._successes += 1
            if self.state is not EndpointState.UNHEALTHY or self._successes >= SUCCESSES_IN:
                self.state = EndpointState.READY
            return self.state
        self._successes = 0
        if said is HealthState.LOADING:
            self.failures = 0
            self.state = EndpointState.LOADING
            return self.state
        self.failures += 1
        if self.failures >= FAILURES_OUT:
            self.state = EndpointState.UNHEALTHY
        return self.state
