"""Every key a policy may have, as pydantic models. Nothing else in the package knows how a key is spelt.

``shown`` (units for people) → ``values`` (numbers, durations, shares, names), ``frequency``, ``secrets``, ``urls`` and
``pattern`` → ``serving`` (models, pools, tenants, gateway) → ``rules`` (conditions, classification, constraints,
routes) → ``proving`` (shadow, rollouts, guards) → ``oversight`` (evidence, records, webhooks, operators) → ``root``
(the whole set). ``tests`` is what may stand beside it.
"""

from gateway.policy.schema.root import Policy

__all__ = ["Policy"]
