"""Quantgate: the entrypoint in front of LLM serving pools of different precision.

The map, top to bottom (an upper layer may import a lower one, siblings never each other):

- ``cli``        commands a person types; ``__main__`` only calls it
- ``app``        composition root: supervisor, worker and control processes
- ``control``    reload, publisher, recorder, metrics, admin API, probes (one process, owns all lasting state)
- ``dataplane``  one request in file order: identity, admission, forward, relay (N worker processes)
- ``demo``, ``simulator``  real llama.cpp fleet for the demo; a simulated runtime for tests and rehearsal
- ``wire``       HTTP/1.1 server and client protocols, connection pools (knows no LLM)
- ``runtimes``   one file per serving runtime: how to probe it, attest it, read its load
- ``policy``     YAML policy: schema, positions, compilation to the routing table, checks
- ``store``      records through SQLAlchemy Core
- ``core``       pure decisions: facts, classification, tokens, decide, balance, evidence, quality
- ``model``      frozen values; ``errors``  what can be answered to a caller
"""

__version__ = "0.1.0"
