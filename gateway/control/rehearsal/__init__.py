"""Rehearsal: a policy's rollouts driven through the production engine, over simulated traffic at compressed time.

No sockets, no database, no clock. In the order of a rehearsal:

- ``levels``     how often things go wrong in a healthy pool: as given, as recorded, or a third of each limit
- ``faults``     what is made to go wrong: in one pool or in all
- ``requests``   one simulated request, finished, checked and announced, as workers would tell it
- ``scenario``   one fault in one bucket: when it trips, how many requests it hurt, what it did to other buckets
- ``months``     months of health in counts per block: how often it cries wolf, when it promotes

Called by ``quantgate rehearse``.
"""

from gateway.control.rehearsal.faults import Fault, default_faults, read_fault
from gateway.control.rehearsal.levels import Levels, recorded_levels, warnings_of
from gateway.control.rehearsal.months import MonthsReport, run_months
from gateway.control.rehearsal.scenario import ScenarioReport, run_scenario

__all__ = [
    "Fault",
    "Levels",
    "MonthsReport",
    "ScenarioReport",
    "default_faults",
    "read_fault",
    "recorded_levels",
    "run_months",
    "run_scenario",
    "warnings_of",
]
