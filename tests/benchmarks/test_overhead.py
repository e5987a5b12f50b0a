"""Calls and their peak are counted, so a contender that ignores the limit is visible."""

from __future__ import annotations

import pytest
import trio

from benchmarks import _overhead
from benchmarks._contenders import FLOOR, Call, Contender, Received, ours
from benchmarks._overhead import CAPACITY


async def reckless(call: Call, elements: int, _: int, __: float, ___: Received) -> None:
    """Calls all elements at once, and each of them twice."""
    async with trio.open_nursery() as nursery:
        for number in range(elements):
            nursery.start_soon(call, number)
            nursery.start_soon(call, number)


def table(*contenders: Contender) -> dict[str, list[str]]:
    size = _overhead.Size(300, 1, lambda: None)
    header, *rows = _overhead.compared("overhead", "one turn", list(contenders), size, with_peers=True).cells()
    assert header[-2:] == ["calls", "peak in flight"]
    return {row[0]: row[-2:] for row in rows}


def test_a_contender_that_ignores_the_limit_shows_its_peak_and_its_calls() -> None:
    lines = table(FLOOR, ours("ordered"), Contender("reckless", reckless))
    assert {name: calls for name, (calls, _) in lines.items()} == {
        "bare worker loop": "300",
        "ordered": "300",
        "reckless": "600",
    }
    # On a busy machine, the operator's feeder may pause before all slots are in use
    assert max(int(lines[name][1]) for name in ("bare worker loop", "ordered")) <= CAPACITY
    assert lines["reckless"][1] == "600"


def test_a_peer_that_is_not_installed_has_a_line() -> None:
    lines = table(FLOOR, ours("ordered"), Contender("absent", reckless, package="no_such_package"))
    assert lines["absent: not installed: .ci/just bench installs it"] == ["", ""]


def test_each_capacity_has_a_line_with_the_ratio_to_the_bare_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_overhead, "ELEMENTS", {1: 20, 1_000: 50})
    (section,) = _overhead.by_capacity(quick=True, on_step=lambda: None)
    assert [line.name for line in section.lines] == ["1", "1,000"]
    assert all(line.values["ratio"] is not None for line in section.lines)
