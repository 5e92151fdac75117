"""HTTP/1.1 on both sides, connection pools and deadlines: bytes and sockets, nothing about language models.

- ``http``      values and byte-level constants that server and client share
- ``wheel``     one timer for all deadlines of a process
- ``reading``   a client's bytes into whole requests within limits; no socket
- ``server``    a client's connection: one request at a time, answer
- ``client``    a pool endpoint's connection: send one request, report its answer as it comes
- ``listener``  who hears an answer, and who it is for
- ``repeats``   heads that are the one before, which need no parser
- ``pool``      kept-alive connections of one endpoint
- ``reach``     connecting to a name of several addresses
"""
