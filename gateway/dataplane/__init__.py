"""One request, in file order.

``pipeline`` (read, identify, classify, decide) → ``admission`` (limits, permit or wait) → ``forward`` (attempts) →
``relay`` (one attempt's answer to the client) → ``exchange.finish`` (exactly one outcome, whatever happened). What is
refused before there is an exchange leaves its own in ``unserved``.

Beside the path: ``fleet`` (endpoints of the generation in force), ``board`` (counters that the workers of a host
share), ``conversations`` (what a conversation must keep), ``link`` (control's messages), ``answers`` (bytes of
answers), ``outcomes`` (the one record of each request).
"""
