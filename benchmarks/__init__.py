"""Measurements of the gateway. Begin with ``python -m benchmarks.compare``; ``README.md`` says how to read its table.

``compare`` runs the rounds and prints the table; ``contenders`` starts what stands between load and backend;
``backend`` and ``load`` are the two ends; ``processes`` starts, pins, measures and stops; ``bare_worker`` is a worker
without any of that. The other programs look at single questions, ``judge_sim`` at the judge's promises.
"""
