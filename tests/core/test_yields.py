"""The yields: sums of the times without a slot."""

from __future__ import annotations

from trio_asyncio_io._core.yields import Yields


def test_times_count_as_running_until_their_invocation_ends() -> None:
    yields = Yields()
    yields.begin(7, 1.0)
    yields.begin(8, 2.0)
    assert (yields.running(3.0), yields.ended) == (2.0 + 1.0, 0.0)
    yields.end(7, 4.0)
    yields.begin(7, 5.0)
    yields.end(7, 5.5)
    yields.end(8, 6.0)
    assert (yields.running(99.0), yields.ended) == (3.5 + 4.0, 0.0)
    yields.finish(7)
    assert (yields.running(99.0), yields.ended) == (4.0, 3.5)


def test_an_invocation_that_kept_its_slot_adds_nothing() -> None:
    yields = Yields()
    yields.finish(7)
    assert yields.ended == 0.0
