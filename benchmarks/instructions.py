"""Machine instructions of one request through the worker's own code: a number that other work cannot change.

    python -m benchmarks.instructions [--stream] [--count 300]

Runs ``benchmarks.micro_request`` under callgrind (Debian's ``valgrind``), counting only between two requests, and says
how many instructions each library ran. On a shared machine times differ by half from run to run; this number by one
percent. It says nothing of the kernel, nor of caches, which cost at least as much: fewer instructions is half the work.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

_OBJECT = re.compile(r"(c?)ob=\((\d+)\)(?: (.*))?")  # a name stands where its number comes first
_COST = re.compile(r"[-+*\d]\S* (\d+)$")


def by_library(lines: Iterable[str]) -> Counter[str]:
    """Instructions that each library itself ran, of callgrind's output. A call's cost is its callee's."""
    names: dict[str, str] = {}
    spent: Counter[str] = Counter()
    library, of_call = "?", False
    for line in lines:
        found = _OBJECT.match(line)
        if found:
            name = names.setdefault(found[2], Path(found[3] or "?").name)
            library = library if found[1] else name
            continue
        cost = _COST.match(line)
        if cost and not of_call:
            spent[library] += int(cost[1])
        of_call = line.startswith("calls=")
    return spent


def counted(count: int, *, stream: bool) -> Counter[str]:
    """Of ``count`` requests. ``SystemExit`` where valgrind is missing or the run fails."""
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is needed: apt-get install valgrind")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}", sys.executable]
        command += ["-m", "benchmarks.micro_request", "--counted", "--count", str(count)]
        run = subprocess.run([*command, *(["--stream"] if stream else [])], capture_output=True, text=True, check=False)
        if run.returncode:
            raise SystemExit(run.stderr[-2_000:])
        with out.open(errors="replace") as lines:
            return by_library(line.rstrip("\n") for line in lines)


def switch(state: str) -> None:
    """Tell the callgrind around this process to count (``on``) or not to (``off``)."""
    subprocess.run(["callgrind_control", "-i", state, str(os.getpid())], stdout=subprocess.DEVNULL, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stream", action="store_true", help="streams of 100 events instead of whole answers")
    parser.add_argument("--count", type=int, default=300)
    args = parser.parse_args()
    spent = counted(args.count, stream=args.stream)
    for library, instructions in spent.most_common(8):
        print(f"{instructions / args.count:12,.0f}  {library}")
    print(f"{spent.total() / args.count:12,.0f}  in all, a {'stream of 100 events' if args.stream else 'request'}")


if __name__ == "__main__":
    main()
