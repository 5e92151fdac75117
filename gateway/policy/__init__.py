"""The policy: YAML written by people, checked as a whole, compiled to the table that a request reads.

The map, in the order of the data:

- ``document``    files → bytes, once → positioned tree (YAML with marks, bounded, no tags)
- ``schema/``     pydantic models of every key; the only place that knows the spelling
- ``findings``    what pydantic says → file, line, column and a mend
- ``references``, ``hardware``, ``reach``   what a schema cannot see: names, native formats, what can ever happen
- ``load``        all of the above: a path → ``Loaded`` (canonical JSON) or ``PolicyRejectedError``
- ``conditions``, ``requirements``, ``classifier``, ``proving``, ``compile``   canonical JSON → ``Table``; no files
- ``oversight``   canonical JSON → what only control needs: records, webhooks, operators
- ``analysis``    the decision table over the finite bucket space

Control calls ``load``; control and every worker call ``compile_table``; the CLI calls all of it.
"""
