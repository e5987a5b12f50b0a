"""Options in use: what each adds to an element, alone and with others, and the memory of a record in the buffer."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from trio_asyncio_io import AsyncWaitOperator, FixedDelay, Observer, transient
from trio_asyncio_io.gates import Auto, Budget, PerKey, RateLimit
from trio_asyncio_io.policies import cached, hedged, single_flight
from trio_asyncio_io.trace import TraceRecorder

from ._contenders import Call, Contender, Received, with_operator
from ._overhead import CAPACITY, ORDERED, Size, compared
from ._report import Line, Section

BUFFER = 10_000
LEAST = 1_000  # records: as many as groups of 10 have in calls
RETRY = FixedDelay(3, 0.0, retry_on=transient)


@dataclass(frozen=True, slots=True)
class Use:
    """A way to use the operator.

    Attributes:
        name: Its name in tables.
        made: Makes the options of a run, with gates and observers of its own.
        wrap: Wraps the function of a run.
    """

    name: str
    made: Callable[[], dict[str, Any]] = dict
    wrap: Callable[[Call], Call] = field(default=lambda call: call, kw_only=True)

    async def loop(self, call: Call, elements: int, capacity: int, seconds: float, received: Received) -> None:
        """Make the calls."""
        await with_operator(self.wrap(call), elements, capacity, seconds, received, **self.made())


class OneHook(Observer):
    """Counts the results."""

    count = 0

    def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self.count += 1


class BusyError(Exception):
    """A response that a retry may avoid, as HTTP clients raise it."""

    status_code = 503


async def replacement(*_: Any) -> None:
    """A handler of errors and timeouts."""


def _fails_once(call: Call, every: int = 1) -> Call:
    """The function, whose first call raises for every n-th value."""
    failed: set[int] = set()

    async def first_fails(number: int) -> Any:
        await call(number)
        if number % every == 0 and number not in failed:
            failed.add(number)
            raise BusyError
        return number

    return first_fails


def _returns(result: Callable[[Any], Any], call: Call) -> Call:
    async def returns(value: Any) -> Any:
        await call(value)
        return result(value)

    return returns


def _rate(name: str = "requests") -> RateLimit:
    return RateLimit(1e9, burst=1e6, name=name)


def _at_once(calls: int) -> Auto:
    """At most this number, whatever fails."""
    return Auto(calls, calls, classify=lambda _: "error")


def _three() -> dict[str, Any]:
    return {"gate": [_rate(), _rate("tokens"), _at_once(CAPACITY)], "retry": RETRY}


def _together(observer: type[Observer]) -> dict[str, Any]:
    return {**_three(), "on_error": "dead_letter", "observer": observer()}


def _cached(call: Call) -> Call:
    return cached(single_flight(call))


PLAIN = Use(ORDERED.name)
THREE = Use("three gates and a retry", _three)
TRACE = Use("a trace", lambda: {"observer": TraceRecorder()})
GROUPS = Use("groups of 10", lambda: {"group": 10}, wrap=partial(_returns, list))
TOGETHER = Use("together", partial(_together, OneHook), wrap=lambda call: _cached(_fails_once(call, every=100)))
IN_USE = (
    PLAIN,
    Use("not used: a retry and handlers", lambda: {"retry": RETRY, "on_error": replacement, "on_timeout": replacement}),
    Use("a rate", lambda: {"gate": _rate()}),
    Use("a budget", lambda: {"gate": Budget(1e9, weight=lambda _: 1.0)}),
    Use("a rate per key, 10 keys", lambda: {"gate": PerKey(_rate(), key=lambda number: number % 10)}),
    Use("held: half of the slots", lambda: {"gate": _at_once(CAPACITY // 2)}),
    THREE,
    Use("failed once, a retry", lambda: {"retry": RETRY}, wrap=_fails_once),
    Use("failed once, a retry and three gates", _three, wrap=_fails_once),
    Use("failed, dead letters", lambda: {"on_error": "dead_letter"}, wrap=_fails_once),
    Use("cached(single_flight)", wrap=_cached),
    Use("hedged", wrap=lambda call: hedged(call, after=1.0)),
    Use("an observer with a hook", lambda: {"observer": OneHook()}),
    TRACE,
    Use("flatten, two outputs", lambda: {"flatten": True}, wrap=partial(_returns, lambda value: (value, value))),
    GROUPS,
    TOGETHER,
    Use(
        "together, with a hedge and a trace",
        partial(_together, TraceRecorder),
        wrap=lambda call: _cached(hedged(_fails_once(call, every=100), after=1.0)),
    ),
)
IN_USE_NOTES = (
    "Three gates: two rates and a number of calls at once, far from their limits. Held: such a gate admits half of "
    "the capacity. A trace keeps 5,000 records. Together: three gates, a retry, `cached(single_flight)`, dead letters "
    "and a hook; one value in a hundred fails once"
)
# What the records in the buffer wait for -> whether only the first call never ends
WAITS = {"waits for a slot": False, "waits for its place in the order": True}


def options(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """The cost of each option in use, and the memory of a record in the buffer."""
    size = Size(2_000 if quick else 5_000, 3 if quick else 21, on_step)
    contenders = [Contender(use.name, use.loop) for use in IN_USE]
    cost = compared("options in use", "Options in use: one checkpoint per call", contenders, size)
    return [replace(cost, notes=f"{cost.notes}. {IN_USE_NOTES}"), _memory(on_step)]


def _memory(on_step: Callable[[], object]) -> Section:
    section = Section(
        "Options in use: bytes of a record in the buffer",
        f"memory that `tracemalloc` counts: the difference between buffers of {BUFFER:,} and {LEAST:,} records, "
        "divided by the records between them. The value, an int, is included",
        dict.fromkeys(WAITS, "{:,.0f}"),
        name="memory",
    )
    for use in (PLAIN, THREE, GROUPS, TRACE, TOGETHER):
        sizes = {state: bytes_per_record(use, BUFFER, only_first=is_first) for state, is_first in WAITS.items()}
        section.lines.append(Line(use.name, sizes))
        on_step()
    return section


def bytes_per_record(use: Use, buffer: int, *, only_first: bool) -> float:
    """Memory of a record that waits in the buffer.

    Args:
        use: The options.
        buffer: The records in a full buffer.
        only_first: Whether only the first call never ends, so that results wait for it. Else records wait for slots.
    """
    least, most = (trio.run(partial(_held, use, each, only_first=only_first)) for each in (LEAST, buffer))
    return (most - least) / (buffer - LEAST)


async def _held(use: Use, buffer: int, *, only_first: bool) -> int:
    """Bytes that are allocated while the buffer is full."""

    async def call(value: Any) -> None:
        if not only_first or 0 in (value if isinstance(value, list) else [value]):
            await trio.sleep_forever()

    size = 0
    tracemalloc.start()
    try:
        async with AsyncWaitOperator(
            use.wrap(call), source=range(2 * buffer), capacity=CAPACITY, timeout=math.inf, buffer=buffer, **use.made()
        ) as operator:
            await wait_all_tasks_blocked()
            assert operator.statistics().buffered == buffer
            size = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return size
