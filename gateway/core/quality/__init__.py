"""Outcome quality of one answer, online and without a reference.

The map, in order of use: `asked` reads what the request wants, `view` prepares one choice (`markdown` tells code from
prose), the checks judge it, `finding` is what they say, `inspection` runs them all.

- arrived whole, labels fit:  `ending`
- requested form:             `structure` (`schema`)
- tools:                      `tools`, `leaks`
- code in fences:             `code` (`sql`)
- degenerate text:            `loops`, `garbage`, `scripts`
- refusals, grounding:        `refusals`, `citations`, `grounding` (`numerals`)
- words that texts seldom have are looked for in one pass:  `seldom`

Everything is a pure function of request and answer bytes, so a pool of processes can run it: bytes in, one small
`Inspection` out.
"""

from gateway.core.quality.asked import Asked, Tool, read_request
from gateway.core.quality.finding import (
    CLASS_OF,
    STRUCTURAL,
    Check,
    FailureClass,
    Finding,
    Inspection,
    Verdict,
)
from gateway.core.quality.inspection import CHECKS, inspect, inspect_assembled, inspect_packed

__all__ = [
    "CHECKS",
    "CLASS_OF",
    "STRUCTURAL",
    "Asked",
    "Check",
    "FailureClass",
    "Finding",
    "Inspection",
    "Tool",
    "Verdict",
    "inspect",
    "inspect_assembled",
    "inspect_packed",
    "read_request",
]
