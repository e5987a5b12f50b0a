"""The protocol of a child: one line of JSON for each line of standard input.

    checkpoint <mode> <capacity> <elements>            all elements, one checkpoint each
    latency <mode> <capacity> <warm> <seconds>         an endless job, stopped after `warm` + `seconds`

The mode is "ordered" or "unordered". A reply has `calls` and `peak` (in flight at once). The reply to `latency` also
has `results`: those received within `seconds`, `warm` seconds after the first call. Before any request, the child
writes `{"ready": true}`. The first argument names a file with the latencies: seconds, one per line.
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
    """Reply until the input ends. Output of libraries goes to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)
        print(json.dumps({"ready": True}), file=replies, flush=True)
        for line in sys.stdin:
            what, mode, capacity, *numbers = line.split()
            found = jobs[what](mode, int(capacity), *map(float, numbers))
            print(json.dumps(found), file=replies, flush=True)


def latencies() -> list[float]:
    """The latencies by call, in seconds."""
    return [float(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").split()]
