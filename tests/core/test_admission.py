"""The holders: how long each gate has held back a line, with instants as plain numbers."""

from __future__ import annotations

from trio_asyncio_io._core.admission import Holders


def test_the_time_counts_for_the_gate_that_holds_the_line_back() -> None:
    holders = Holders()
    holders.change("breaker", 5.0)
    joined = holders.seconds(5.0)
    holders.change("rate", 15.0)
    holders.change("rate", 17.0)
    holders.change("breaker", 18.0)
    assert holders.since(joined, 20.0) == {"breaker": 10.0 + 2.0, "rate": 3.0}


def test_a_call_that_joins_later_waits_only_from_then_on() -> None:
    holders = Holders()
    holders.change("breaker", 0.0)
    joined = holders.seconds(9.0)
    assert holders.since(joined, 9.0) == {}
    holders.change("rate", 10.0)
    assert holders.since(joined, 12.0) == {"breaker": 1.0, "rate": 2.0}
