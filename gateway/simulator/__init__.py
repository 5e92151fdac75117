"""A simulated serving runtime: an OpenAI-compatible server that behaves like vLLM and fails on demand.

It is for tests, load and rehearsal of policies; it never stands in for a real runtime in the demo. What it owns:

- ``config``, ``latency``, ``fault``     what an operator sets, as values
- ``reading``, ``ask``                   a request read once
- ``prose``, ``instance``, ``pattern``   plausible text, schema instances, strings for a regular expression
- ``compose``, ``answer``, ``defect``    the answer to an ask, and what a bad pool makes of it
- ``chat``, ``completions``, ``responses``, ``messages``   the answer in each API's shape, on a ``frame``
- ``vectors``, ``words``, ``audio``      embeddings, rerank and score; tokenize; transcription
- ``engine``, ``delivery``               slots, queue, time: when each token leaves, and how a fault ends it
- ``meters``, ``exposition``, ``identity``   what it counts; ``/metrics``; ``/v1/models``, ``/server_info``, fingerprint
- ``service``                            one inference request, from its body to the engine
- ``connection``, ``routes``, ``control``, ``server``      sockets, paths, ``/sim/*``, start and stop

Answers are a function of the request and the seed alone. Only ``engine``, ``connection`` and ``server`` know time or
sockets. ``gateway.cli.simulate`` starts it.
"""
