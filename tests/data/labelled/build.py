"""Write the synthetic part of the labelled set: ``python build.py`` (or ``--check`` to compare with what is stored).

The generators are hand-written; labels follow from how each answer was made or from reading it, never from running the
checks. One line is one case: id, lang, origin, request, answer (JSON body; text = event stream),
labels.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from generators import code, degenerate, framing, grounded, held_out, prose, refusing, structured, tools

HERE = Path(__file__).parent
PARTS = {
    "synthetic.jsonl": (prose, structured, tools, code, grounded, refusing, degenerate, framing),
    "held_out_hand.jsonl": (held_out,),
}
"""File → its generators. The held-out part exists to measure, the other to develop against."""


def lines(modules: tuple[Any, ...]) -> list[str]:
    """All cases of some generators in a fixed order, one JSON line each."""
    made = [item for module in modules for item in module.cases()]
    names = [item["id"] for item in made]
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise SystemExit(f"ids used twice: {sorted(doubled)}")
    return [json.dumps(item, sort_keys=True, ensure_ascii=True) for item in made]


def main() -> int:
    """Write the files, or with ``--check`` only say whether they are current."""
    stale = 0
    for name, modules in PARTS.items():
        text = "\n".join(lines(modules)) + "\n"
        path = HERE / name
        if "--check" in sys.argv:
            stale |= not path.exists() or path.read_text(encoding="utf-8") != text
        else:
            path.write_text(text, encoding="utf-8")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
