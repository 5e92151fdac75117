"""The policy: YAML written by people, checked as a whole, compiled to the table that a request reads.

The map, in the order of the data:

- ``document``, ``plain_file``   files → bytes, once
- ``reading``, ``broken``, ``numbers``, ``merge``   bytes → ``tree``: data with its places (bounded, no tags), several
  files as one
- ``schema``      pydantic models of every key; the only place that knows the spelling
- ``findings``    what pydantic says → file, line, column and a mend
- ``references``, ``hardware``, ``doubts``, ``reach``, ``feeding``   what a schema cannot see: names, native formats,
  what is hardly meant, what can ever happen, guards that get no data
- ``load``        all of the above: a path → ``Loaded`` (canonical JSON) or ``PolicyRejectedError``
- ``conditions``, ``requirements``, ``classifier``, ``proving``, ``compile``   canonical JSON → ``Table``; no files
- ``patterns``, ``prefilter``, ``formats``, ``names``, ``secret``, ``tokenizer_files``, ``memo``   what a table is made
  of
- ``oversight``   canonical JSON → what only control needs: records, webhooks, operators
- ``space``, ``cells``, ``words``, ``analysis``   the decision table over every kind of request, in words

Control calls ``load``; control and every worker call ``compile_table``; the CLI calls all of it.
"""
