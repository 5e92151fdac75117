"""Records that outlive the process: SQLite in a file by default, PostgreSQL by URL, through SQLAlchemy Core.

- ``engine``      open a database; refuses what cannot work, with the mend
- ``tables``      the schema, one place
- ``migrate``     bring a database to the schema of this version (Alembic)
- ``migrations``  the steps, one file each
- ``inserting``   many rows a statement
- ``selecting``   what selects share: a span of time, pages newest first
- ``recording``   requests as rows: what many share once, what is their own for each
- ``records``     requests read back, in pages or all
- ``aftermath``   what became known later: feedback, consequences of tool calls
- ``pairs``       compared pairs of shadow traffic
- ``deployments`` what ran in a pool, by the hash of its record
- ``samples``     encrypted texts for replay
- ``gathering``   rows for a report, streamed
- ``rollouts``    where rollouts stand (compare and set) and the append-only record of their transitions
- ``reports``     evidence that the gateways of one database write for each other, in one order
- ``retention``   delete what is past its time

Synchronous by design: control calls it from one writer thread, so that a slow disk never meets an event loop. No text
of prompts or answers is stored anywhere but in ``samples``.
"""
