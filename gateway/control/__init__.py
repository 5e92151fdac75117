"""The control process: everything that is not one request. Nothing here serves one: with all of this dead, workers go
on with the last table they have.

From the policy's files to the workers:

- ``watch``, ``glance``        what the files hold, and whether a look could find anything
- ``reload``                   load, keep the last good, tell why
- ``publisher``, ``durable``   the only writer of the routing table; the state directory
- ``link``, ``frames``, ``hub``   the workers' socket, and who understands which message
- ``probes``, ``prober``, ``health``, ``endpoints``   health, load and precision of the runtimes

From finished requests to numbers and records:

- ``recorder``                 where every outcome arrives, in batches
- ``access_log``, ``metrics``, ``latency``   a line, counters and sketches of each
- ``series``, ``gauges``, ``exposition``   what counters are made of, what is read at a scrape, the text of it
- ``evidence``                 wires what follows
- ``scoring``, ``scorer_process``, ``verdicts``   checks of answers, in processes of their own
- ``joining``, ``recent``, ``recall``   feedback and later turns, joined to the answers they speak of
- ``pairing``, ``pair_process``, ``opinion_plugins``   shadow pairs compared
- ``likelihood``, ``likelihood_calls``, ``likelihood_caution``   and scored by the pools, as far as no engine is risked
- ``sampling``                 which texts are kept
- ``archive``, ``backlog``     on the way to the database, by one writer thread
- ``orphans``                  no process outlives control

From evidence to decisions on rollouts:

- ``rollouts_intake``          dispatches before what became of them
- ``rollouts_buckets``         whom it is about
- ``guards``, ``worth``        which series a guard becomes, and what one outcome is worth to it
- ``rollouts_feeds`` with ``rollouts_booking``, ``rollouts_sessions``, ``rollouts_margins``, ``rollouts_shares``,
  ``rollouts_latencies``, ``rollouts_pairs``   outcomes into series
- ``rollouts_runs``, ``rollouts_effect``   series and verdicts of one bucket, and how far outcomes repeat each other
- ``rollouts_due``, ``rollouts_trips``   what follows
- ``rollouts``, ``rollouts_values``, ``rollouts_world``   the engine that proposes, what it passes on, what it looks at
- ``rollouts_service``         stores, obeys, tells: with ``rollouts_keeping``, ``rollouts_storing``,
  ``rollouts_record``, ``rollouts_notices`` and ``webhooks``
- ``rollouts_sharing``, ``rollouts_names``   the sum of what several gateways saw
- ``rollouts_open``, ``rollouts_clock``   what a restart finds again, and what a clock that is set does
- ``rollouts_room``, ``rollouts_gauges``   what the baseline could not take back; rollouts as metrics
- ``rollouts_absence``         people told of candidates that serve nothing
- ``rehearsal``                the same engine over simulated traffic

The admin port: ``admin``, ``api_records``, ``api_pairs``, ``api_rollouts`` with ``incident``; ``access`` says who may,
``answers`` and ``reads`` are their common ground, ``report_process`` makes a report.
"""
