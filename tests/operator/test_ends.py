"""Nothing that has ended stays in memory, however it has ended, while its gates, policies and observers live on."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support import variation_except
from trio_asyncio_io import AsyncWaitOperator, AttemptTimeoutError, FixedDelay, shared
from trio_asyncio_io._core.admission import Admission, WaitingCall
from trio_asyncio_io._core.ledger import Ledger
from trio_asyncio_io._core.queue import Entry
from trio_asyncio_io._operator.worker import Worker
from trio_asyncio_io.gates import Budget, BudgetError, CircuitBreaker, Outcome, PerKey, RateLimit
from trio_asyncio_io.policies import cached, gated, hedged, single_flight
from trio_asyncio_io.trace import TraceRecorder

RECORDS = 12
JOBS = 3
PRESENT: ContextVar[Any] = ContextVar("present")


class Record:
    """An element that fails at its first attempts.

    Args:
        number: Of the element.
        failures: The number of its attempts that fail.
    """

    def __init__(self, number: int, failures: int) -> None:
        self.number = number
        self.failures = failures


class Response:
    """What the exception of an HTTP client refers to."""


class UnavailableError(Exception):
    """The service is overloaded."""

    def __init__(self) -> None:
        super().__init__("503")
        self.status = 503
        self.response = Response()


KINDS: tuple[type, ...] = (
    AsyncWaitOperator,
    Ledger,
    Worker,
    Entry,
    WaitingCall,
    Admission,
    Record,
    Response,
    UnavailableError,
    AttemptTimeoutError,
    BudgetError,
    ZeroDivisionError,
)

RUNNING = {AsyncWaitOperator, Ledger, Worker}


def alive() -> Counter[type]:
    """By type, the objects that are reachable, except the last error of each open circuit."""
    while gc.collect():
        pass
    objects = gc.get_objects()
    circuits = sum(isinstance(each, CircuitBreaker) and not each.is_closed for each in objects)
    of_circuits = Counter(dict.fromkeys([UnavailableError, Response, AttemptTimeoutError], circuits))
    return Counter(kind for each in objects for kind in KINDS if isinstance(each, kind)) - of_circuits


async def call(record: Record) -> int:
    """The number of the record, after its failures."""
    await trio.sleep(0.1 + record.number % RECORDS / 100)
    if record.failures:
        record.failures -= 1
        raise UnavailableError
    return record.number


async def call_in_context(record: Record) -> int:
    PRESENT.set(record)
    return await call(record)


async def call_group(records: list[Record]) -> list[int]:
    return [await call(record) for record in records]


async def call_shared(resource: Any, record: Record) -> int:
    async with resource:
        return await call(record)


def by_number(record: Record) -> int:
    return record.number


def divide(error: Exception) -> Outcome:
    raise ZeroDivisionError(str(error))


@dataclass
class Construction:
    """An operator whose function and options outlive it."""

    function: Any = call
    options: dict[str, Any] = field(default_factory=dict)
    is_traced: bool = False
    recorders: list[TraceRecorder] = field(default_factory=list)
    operators: list[AsyncWaitOperator[Any, Any]] | None = None

    def operator(self, **options: Any) -> AsyncWaitOperator[Any, Any]:
        failures, number = options.pop("failures", 1), options.pop("number", RECORDS)
        source = (Record(each, failures if each % 4 == 1 else 0) for each in range(number))
        extra = options.pop("gate", None)
        given = {"source": source, "timeout": 60.0, "capacity": 3, "buffer": 6, **self.options, **options}
        if extra is not None:
            gate = given.get("gate", [])
            given["gate"] = [extra, *(gate if isinstance(gate, list) else [gate])]
        if self.is_traced:
            self.recorders.append(TraceRecorder())
            given["observer"] = self.recorders[-1]
        operator = AsyncWaitOperator(self.function, **given)
        if self.operators is not None:
            self.operators.append(operator)
        return operator


RETRY = FixedDelay(2, 0.1, retry_on=lambda error: not isinstance(error, ZeroDivisionError))

CONSTRUCTIONS: dict[str, Callable[[], Construction]] = {
    "plain": Construction,
    "unordered": lambda: Construction(options={"mode": "unordered"}),
    "keyed": lambda: Construction(options={"mode": "keyed", "key": lambda record: record.number % 2}),
    "retries": lambda: Construction(options={"retry": RETRY}),
    "retries behind a gate": lambda: Construction(options={"retry": RETRY, "gate": RateLimit(5.0)}),
    "retries behind gates per key": lambda: Construction(
        options={
            "retry": RETRY,
            "gate": PerKey([RateLimit(5.0), CircuitBreaker()], key=lambda record: record.number % 5),
        }
    ),
    "closed circuit": lambda: Construction(options={"retry": RETRY, "gate": CircuitBreaker()}),
    "open circuit": lambda: Construction(options={"gate": CircuitBreaker("fail", calls=1)}),
    "classify raises": lambda: Construction(
        options={"retry": FixedDelay(1, 0.1, attempt_timeout=0.15), "gate": CircuitBreaker(classify=divide)}
    ),
    "attempts time out": lambda: Construction(options={"retry": FixedDelay(1, 0.1, attempt_timeout=0.15)}),
    "hedged": lambda: Construction(hedged(call, after=0.1, budget=1.0), {"retry": RETRY, "gate": RateLimit(50.0)}),
    "cached": lambda: Construction(cached(call, ttl=60.0, key=by_number), {"retry": RETRY}),
    "single_flight": lambda: Construction(single_flight(call, key=by_number), {"retry": RETRY}),
    "gated": lambda: Construction(gated(call, [RateLimit(20.0), CircuitBreaker()]), {"retry": RETRY}),
    "shared": lambda: Construction(partial(call_shared, shared("pool", dict)), {"retry": RETRY}),
    "groups": lambda: Construction(call_group, {"group": 3, "group_split": True}),
    "groups behind a gate": lambda: Construction(
        call_group, {"group": 3, "group_split": True, "retry": RETRY, "gate": RateLimit(5.0)}
    ),
    "traced": lambda: Construction(options={"retry": RETRY}, is_traced=True),
    "context variable": lambda: Construction(call_in_context, {"retry": RETRY, "gate": RateLimit(5.0)}),
}


async def receive_all(operator: AsyncWaitOperator[Any, Any]) -> None:
    async with operator:
        async for _ in operator.output:
            pass


async def succeed(construction: Construction) -> None:
    await receive_all(construction.operator(failures=0, on_error="skip"))


async def skip_failures(construction: Construction) -> None:
    await receive_all(construction.operator(failures=9, on_error="skip"))


async def recover(construction: Construction) -> None:
    await receive_all(construction.operator(on_error="skip"))


async def fail(construction: Construction) -> None:
    with suppress(Exception):
        await receive_all(construction.operator(failures=9))


async def be_refused(construction: Construction) -> None:
    await receive_all(construction.operator(on_error="skip", gate=Budget(4.0)))


async def fail_by_refusal(construction: Construction) -> None:
    with suppress(Exception):
        await receive_all(construction.operator(gate=Budget(2.0)))


async def be_cancelled(construction: Construction) -> None:
    with trio.move_on_after(0.35):
        await receive_all(construction.operator(on_error="skip"))


async def time_out(construction: Construction) -> None:
    await receive_all(construction.operator(on_error="skip", timeout=0.15))


async def leave_early(construction: Construction) -> None:
    async with construction.operator(on_error="skip", gate=Budget(4.0)) as operator:
        await operator.output.receive()


async def raise_in_the_body(construction: Construction) -> None:
    with suppress(KeyError):
        async with construction.operator(on_error="skip"):
            await trio.sleep(0.35)
            raise KeyError


async def leave_dead_letters(construction: Construction) -> None:
    async with construction.operator(failures=9, on_error="dead_letter") as operator:
        await trio.sleep(20.0)
        assert operator.statistics().running == 0


async def restore(construction: Construction) -> None:
    async with construction.operator(failures=9, on_error="dead_letter") as operator:
        await trio.sleep(0.25)
        snapshot = operator.snapshot()
    await receive_all(construction.operator(on_error="skip", source=[], restore=snapshot))


ENDS: list[Callable[[Construction], Awaitable[None]]] = [
    succeed,
    skip_failures,
    recover,
    fail,
    be_refused,
    fail_by_refusal,
    be_cancelled,
    time_out,
    leave_early,
    raise_in_the_body,
    leave_dead_letters,
    restore,
]


@pytest.mark.parametrize("end", variation_except([fail, be_cancelled, restore], ENDS), ids=lambda end: end.__name__)
@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_no_operator_record_or_exception_is_kept(name: str, end: Callable[[Construction], Awaitable[None]]) -> None:
    construction = CONSTRUCTIONS[name]()
    before = alive()

    async def main() -> None:
        for _ in range(JOBS):
            await end(construction)
        assert alive() - before == Counter()

    trio.run(main, clock=MockClock(autojump_threshold=0))
    assert alive() - before == Counter()


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_no_error_or_record_of_an_ended_call_is_kept_while_the_operator_runs(name: str) -> None:
    construction = CONSTRUCTIONS[name]()
    before = alive()

    async def main() -> None:
        async with construction.operator(on_error="skip") as operator:
            async for _ in operator.output:
                pass
            await wait_all_tasks_blocked()  # the workers end
            assert {kind for kind in alive() - before if kind not in RUNNING} == set()

    trio.run(main, clock=MockClock(autojump_threshold=0))


@pytest.mark.parametrize("end", [be_refused, be_cancelled, leave_early, time_out], ids=lambda end: end.__name__)
@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_an_operator_that_is_kept_for_its_snapshot_keeps_no_call_and_no_error(
    name: str, end: Callable[[Construction], Awaitable[None]]
) -> None:
    construction = CONSTRUCTIONS[name]()
    construction.operators = []
    before = alive()
    trio.run(end, construction, clock=MockClock(autojump_threshold=0))
    assert len(construction.operators) == 1
    assert set(alive() - before) <= {AsyncWaitOperator, Ledger, Entry, Record}


@pytest.mark.soak
@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_a_million_elements_leave_nothing_behind(name: str) -> None:
    construction = CONSTRUCTIONS[name]()
    before = alive()
    objects: list[int] = []

    async def main() -> None:
        async with construction.operator(on_error="skip", number=1_000_000) as operator:
            received = 0
            async for _ in operator.output:
                received += 1
                if received % 100_000 == 0:
                    assert max((alive() - before).values()) <= 20
                    objects.append(len(gc.get_objects()))
            objects.append(len(gc.get_objects()))  # an open circuit may have refused nearly all

    trio.run(main, clock=MockClock(autojump_threshold=0))
    assert alive() - before == Counter()
    assert max(objects) <= objects[0] + 1_000
