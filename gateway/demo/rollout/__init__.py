"""The demo's second part: the 4-bit pool enters as candidate, and the judge decides bucket by bucket, live.

``notes`` makes the requests and knows what is right, ``traffic`` sends them, ``standing`` reads what the gateway tells
of the rollout, ``screen`` shows it while it runs, ``findings`` counts and proves afterwards, ``summary`` tells it, and
``chapter`` is the order of things. Called by ``gateway.demo.run`` after the first part, on the same servers.
"""
