"""A small report."""

from __future__ import annotations

import pytest

from benchmarks._report import Line, Report, Section


@pytest.fixture
def report() -> Report:
    """The costs of three contenders and of a peer that is not installed, and a cancellation."""
    overhead = Section(
        "Overhead: one turn",
        "median of 3 alternating rounds",
        {"μs/element": "{:.1f}", "ratio": "{:.2f}"},
        [
            Line("bare worker loop", {"μs/element": 10.0, "ratio": 1.0}, 100),
            Line("ordered", {"μs/element": 14.0, "ratio": 1.4, "of ordered": 1.0}, 100),
            Line("unordered", {"μs/element": 16.0, "ratio": 1.6}, 100),
            Line("aiostream (no timeout)", {}, note="not installed: .ci/just bench installs it"),
        ],
        "overhead",
        "operator",
    )
    cancelled = Section(
        "Cancelling",
        "in seconds",
        {"seconds": "{:.2f}"},
        [Line("ordered", {"seconds": 0.3}, 10_000)],
        "cancellation",
        "scale",
    )
    machine = {
        "commit": "1234abcd",
        "python": "3.11.7",
        "system": "Linux",
        "cores": 2,
        "load": 0.5,
        "packages": {"trio": "0.35.0"},
    }
    machines = {"operator": machine, "scale": {**machine, "commit": "5678ef01"}}
    return Report(is_quick=False, sections=[overhead, cancelled], machines=machines)
