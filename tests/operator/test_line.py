"""The line: which call may ask the gates."""

from __future__ import annotations

from trio_asyncio_io._core.queue import Entry
from trio_asyncio_io._line import Line, Place


def entry(sequence: int, attempts: int) -> Entry:
    made = Entry("a", sequence)
    made.attempts = attempts
    return made


def test_retries_are_first_and_those_with_few_attempts_before_others() -> None:
    line = Line()
    places = {
        name: line.join(each)
        for name, each in {
            "new": entry(0, 0),
            "newer": entry(1, 0),
            "third attempt": entry(2, 2),
            "newer second attempt": entry(4, 1),
            "second attempt": entry(3, 1),
        }.items()
    }
    order = []
    while line:
        [name] = [name for name, place in places.items() if line.is_first(place)]
        order.append(name)
        line.leave(places[name])
    assert order == ["second attempt", "newer second attempt", "third attempt", "new", "newer"]


def is_moved(line: Line, place: Place, change: Place) -> bool:
    """Whether the place may ask again when another one has left."""
    moved = place.moved
    line.leave(change)
    return moved.is_set()


def test_the_next_call_asks_when_the_first_one_leaves() -> None:
    line = Line()
    first, second, third = [line.join(entry(sequence, 0)) for sequence in range(3)]
    assert not is_moved(line, second, third)
    assert is_moved(line, second, first)
    assert line.is_first(second)
