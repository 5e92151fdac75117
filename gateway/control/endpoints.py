"""What control knows of one endpoint at one moment, as a value for workers, metrics and the admin API.

Owns the rule how health and attestation together make the state; no I/O. Filled by ``control.probes``.
"""

import msgspec

from gateway.model.enums import EndpointState
from gateway.model.messages import EndpointReport
from gateway.runtimes.adapter import Load
from gateway.runtimes.attestation import Attestation
from gateway.runtimes.compare import Mismatch, Verdict

# Load older than this is no longer told: an unknown load is better than a wrong one.
LOAD_STALE_S = 30.0


class EndpointView(msgspec.Struct, frozen=True):
    """One endpoint. ``state_since`` and ``attested_at`` are seconds of control's clock; None = not yet.

    ``health_reason``: what its last check said, empty where it is ready.
    """

    pool: str
    endpoint: str
    url: str
    runtime: str
    enforce: bool
    health: EndpointState = EndpointState.UNKNOWN
    health_reason: str = ""
    state_since: float = 0.0
    load: Load | None = None
    attestation: Attestation | None = None
    attested_at: float | None = None
    verdict: Verdict = Verdict.UNATTESTED
    mismatches: tuple[Mismatch, ...] = ()

    @property
    def state(self) -> EndpointState:
        """What workers go by: a proven mismatch quarantines where the policy enforces attestation."""
        if self.enforce and self.verdict is Verdict.MISMATCH:
            return EndpointState.QUARANTINED
        return self.health

    @property
    def reason(self) -> str:
        """Why it is in this state, in words; empty where nothing is to be said."""
        if self.state is EndpointState.QUARANTINED:
            return "; ".join(mismatch.reason for mismatch in self.mismatches if mismatch.proven)
        return self.health_reason

    def report(self, now: float) -> EndpointReport:
        """The message form, with the load's age at ``now``."""
        load = self.load
        if load is None or now - load.at > LOAD_STALE_S:
            return EndpointReport(self.endpoint, self.state, -1.0, -1.0, -1.0, -1.0)
        return EndpointReport(
            self.endpoint,
            self.state,
            _known(load.running),
            _known(load.waiting),
            _known(load.kv_usage),
            max(0.0, now - load.at),
        )


def _known(value: float | None) -> float:
    return -1.0 if value is None else float(value)
