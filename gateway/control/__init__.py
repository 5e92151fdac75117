"""The control process: everything that is not one request.

In the order data flows: ``watch`` (what the policy files hold) → ``reload`` (load, keep the last good) → ``publisher``
(the only writer of the routing table) → ``link`` (unix socket to the workers, ``frames`` on it). Back from the workers:
``link`` → ``recorder`` → ``metrics`` (numbers: ``series``, scraped through ``exposition``) and ``access_log``.
Beside it: ``probes`` and ``attest`` (health, load and precision of the runtimes), ``durable`` (the state directory),
``admin`` (HTTP on the second port).

Nothing here serves a request: with all of this dead, workers go on with the last table they have.
"""
