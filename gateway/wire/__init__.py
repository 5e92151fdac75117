"""HTTP/1.1 on both sides, connection pools and deadlines: bytes and sockets, nothing about language models.

- ``http``    values and byte-level constants that server and client share
- ``wheel``   one timer for all deadlines of a process
- ``server``  a client's connection: parse, limit, one request at a time, answer
- ``client``  a pool endpoint's connection: send one request, report its answer as it comes
- ``pool``    kept-alive connections of one endpoint
"""
