"""Counts the instructions of an element: `python -m benchmarks.instructions [COMMIT]`, from the top of the repository.

Valgrind's cachegrind counts them, so the load of the machine does not matter. With a commit, this tree is compared with
it. Without one, gates are compared with none.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tarfile import TarFile
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
CHILD = ROOT / "benchmarks" / "children" / "counted.py"
# By capacity: the lengths of two runs, whose difference has no start. The first one fills buffer and sample
LENGTHS = {1: (1_000, 2_650), 100: (3_000, 8_500), 10_000: (35_000, 46_000)}
GATES = ("", "CircuitBreaker", "RateLimit")


def main() -> None:
    """Print a line for each case: the instructions of an element, and the difference."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("commit", nargs="?", help="compare with this commit, such as cda5cf4")
    parser.add_argument("--capacity", type=int, nargs="*", choices=list(LENGTHS), default=[1, 100])
    options = parser.parse_args()
    modes = [f"{mode} {capacity}" for capacity in options.capacity for mode in ("ordered", "unordered")]
    if options.commit is None:
        cases = [f"{mode} {gate}".rstrip() for mode in modes for gate in GATES]
        counts = dict(zip(cases, counted(ROOT, cases), strict=True))
        for case, count in counts.items():
            _show(case, counts[" ".join(case.split()[:2])], count)
        return
    with TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", options.commit, "trio_asyncio_io"], cwd=ROOT, check=True, capture_output=True
        )
        TarFile(fileobj=BytesIO(archive.stdout)).extractall(folder, filter="data")
        before = counted(Path(folder), modes)
    for mode, old, new in zip(modes, before, counted(ROOT, modes), strict=True):
        _show(mode, old, new)


def _show(case: str, old: float, new: float) -> None:
    print(f"{case:30} {old:10,.0f} {new:10,.0f} {new / old - 1:+7.1%}", flush=True)


def counted(tree: Path, cases: Sequence[str]) -> list[float]:
    """The instructions of an element in each case, with the operator of this tree."""
    words = [case.split() for case in cases]
    runs = [" ".join([*each[:2], str(length), *each[2:]]) for each in words for length in LENGTHS[int(each[1])]]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(tree)}
    command = [sys.executable, str(CHILD), *runs]
    found = subprocess.run(
        ["valgrind", *["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"], *command],
        cwd=tree,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    totals = [int(number.replace(",", "")) for number in re.findall(r"I +refs: +([\d,]+)", found.stderr)]
    pairs = zip(totals[::2], totals[1::2], [LENGTHS[int(each[1])] for each in words], strict=False)  # last: the parent
    return [(long - short) / (lengths[1] - lengths[0]) for short, long, lengths in pairs]


if __name__ == "__main__":
    main()
