"""A simulated serving runtime: an OpenAI-compatible server that behaves like vLLM and fails on demand.

It is for tests, load and rehearsal of policies; it never stands in for a real runtime in the demo. What it owns:

- ``config``, ``latency``, ``fault``     what an operator sets, as values
- ``ask``                                a request read once
- ``prose``, ``instance``, ``pattern``   plausible text, schema instances, strings for a regular expression
- ``answer``, ``defect``                 the answer to an ask, and what a bad pool makes of it
- ``chat``, ``completions``, ``responses``, ``messages``   the answer in each API's shape, whole or as events
- ``vectors``, ``words``, ``audio``      embeddings, rerank and score; tokenize; transcription
- ``engine``                             slots, queue, time: when each token leaves
- ``exposition``, ``identity``           ``/metrics``; ``/v1/models``, ``/server_info``, fingerprint
- ``connection``, ``routes``, ``control``, ``server``      sockets, paths, ``/sim/*``, start and stop

Answers are a function of the request and the seed alone. Only ``engine``, ``connection`` and ``server`` know time or
sockets. ``gateway.cli.simulate`` starts it.
"""
