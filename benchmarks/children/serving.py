"""Serving: a child answers each line of standard input with a line of JSON.

    turn <mode> <capacity> <elements>                  all elements, one turn of the scheduler for each
    latency <mode> <capacity> <warm> <seconds>         an endless job, stopped when these seconds have passed

The mode is "ordered" or "unordered". An answer has `calls` and `peak` (most in flight at once) and, of a
latency, `results`: how many came within `seconds`, `warm` seconds after the first call. The first line,
`{"ready": true}`, is not asked for. The latencies are in the file that the first
argument names: seconds, one a line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["latencies", "serve"]

Job = Callable[..., "dict[str, Any]"]


def serve(jobs: dict[str, Job]) -> None:
    """Answer until the input ends. What libraries print goes to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        print(json.dumps({"ready": True}), file=answers, flush=True)
        for line in sys.stdin:
            what, mode, capacity, *numbers = line.split()
            found = jobs[what](mode, int(capacity), *map(float, numbers))
            print(json.dumps(found), file=answers, flush=True)


def latencies() -> list[float]:
    """Seconds, by call."""
    return [float(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").split()]
