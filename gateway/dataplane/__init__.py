"""One request, in file order.

- ``worker``, ``link``         the stages wired together, and control's messages
- ``pipeline``                 read, identify, classify, decide: with ``known``, ``identity``, ``decoding``, ``sizing``
- ``deciding``, ``conversations``   the table's answer, the rollout's arm, what a conversation must keep
- ``admission``, ``quota``     limits, permit or wait
- ``forward``, ``attempt``, ``fleet``   attempts at the endpoints of the generation in force
- ``trials``                   which requests try a candidate whose endpoints are ejected
- ``relay``, ``collected``     one attempt's answer to the client, as it comes or whole
- ``exchange``                 the state of one request; ``exchange.finish`` ends it with exactly one outcome
- ``outcomes``, ``kinds``, ``starts``   the one record of each request, and of each dispatch in a rollout

Beside the path:

- ``front``, ``models``, ``feedback``, ``unserved``   paths that need no pool, and what is refused unread
- ``answers``                  bytes of answers
- ``board``, ``mapped``        counters that the workers of a host share, in files that they map together
- ``shadow``, ``mirrored``, ``legs``, ``places``, ``pairs``   mirrored traffic, never at a client's cost
"""
