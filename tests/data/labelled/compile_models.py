"""Join collected answers with their labels: ``python compile_models.py FOLDER``.

Reads FOLDER/*.jsonl as `collect.py` wrote them; writes `models.jsonl` (KEPT of `model_labels.py`) and
`held_out_models.jsonl` (HELD_OUT). Only labelled answers are kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from model_labels import HELD_OUT, KEPT

HERE = Path(__file__).parent


def read_labels(text: str) -> dict[str, dict[str, list[str]]]:
    """id → fail, unsure, pass."""
    labels = {}
    for line in filter(None, text.strip().splitlines()):
        name, _, rest = line.partition(": ")
        parts = [part.split() for part in [*rest.split("|"), "", ""]]
        labels[name] = {"fail": parts[0], "unsure": parts[1], "pass": parts[2]}
    return labels


def main(folder: str) -> None:
    """Write both files; an unknown id in the labels stops."""
    rows: dict[str, dict[str, Any]] = {}
    for path in sorted(Path(folder).glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows[row["id"]] = row
    for text, target in ((KEPT, "models.jsonl"), (HELD_OUT, "held_out_models.jsonl")):
        lines = []
        for name, labels in read_labels(text).items():
            row = rows[name]
            item = {
                "id": name,
                "lang": "zh" if "-zh" in name or name.endswith("code-05") else "en",
                "origin": f"model:{row['variant']}",
            }
            item |= {"request": row["request"], "answer": row["answer"], "labels": labels}
            lines.append(json.dumps(item, sort_keys=True, ensure_ascii=True))
        (HERE / target).write_text("\n".join(lines) + "\n" if lines else "", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
