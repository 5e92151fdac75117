"""The control process: everything that is not one request.

In the order data flows: ``watch`` (what the policy files hold) → ``reload`` (load, keep the last good) → ``publisher``
(the only writer of the routing table) → ``link`` (unix socket to the workers, ``frames`` on it). Back from the workers:
``link`` → ``recorder`` → ``metrics`` (numbers: ``series``, scraped through ``exposition``) and ``access_log``.
Beside it: ``probes`` and ``attest`` (health, load and precision of the runtimes), ``durable`` (the state directory),
``admin`` (HTTP on the second port).

Rollouts, in the order in which evidence becomes a decision: ``rollouts_intake`` (dispatches before what became of them)
→ ``rollouts_buckets`` (whom it is about) → ``rollouts_feeds`` with ``_sessions``, ``_margins``, ``_shares``,
``_latencies`` and ``_pairs`` (outcomes into series) → ``rollouts_runs`` (series and verdicts of one bucket) →
``rollouts_due`` and ``rollouts_trips`` (what follows) → ``rollouts`` (the engine that proposes) → ``rollouts_service``
(stores, obeys, tells) with ``_keeping``, ``_storing``, ``_record`` and ``_notices``. ``rollouts_sharing`` sums what
other gateways saw, ``rollouts_open`` is what a restart finds again, ``rollouts_clock`` what a clock that was set does.

Nothing here serves a request: with all of this dead, workers go on with the last table they have.
"""
