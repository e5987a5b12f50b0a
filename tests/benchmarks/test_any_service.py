"""The service with any of the usual limits, and the capacity that a person would choose for it."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from benchmarks.resilience._automatic import SERVICES, _by_hand, _drawn
from benchmarks.resilience._services import AnyService, Settings, StatusError, fixed


async def statuses(service: AnyService, calls: int) -> list[int]:
    """The statuses of calls that start together. 200: it was admitted."""
    found: list[int] = []

    async def call() -> None:
        try:
            await service(None)
            found.append(200)
        except StatusError as error:
            found.append(error.status)

    async with trio.open_nursery() as nursery:
        for _ in range(calls):
            nursery.start_soon(call)
    return sorted(found)


async def test_calls_beyond_a_number_are_refused(autojump_clock: MockClock) -> None:
    assert await statuses(AnyService(Settings(fixed(1.0), at_once=2), 1), 3) == [200, 200, 503]
    assert await statuses(AnyService(Settings(fixed(1.0), at_once=2, status=429), 1), 3) == [200, 200, 429]
    assert await statuses(AnyService(Settings(fixed(1.0), servers=1, line=1), 1), 3) == [200, 200, 503]


async def test_calls_beyond_a_rate_are_refused(autojump_clock: MockClock) -> None:
    bucket = AnyService(Settings(fixed(0.1), rate=1.0, burst=2.0), 1)
    assert await statuses(bucket, 3) == [200, 200, 429]
    await trio.sleep(0.9)
    assert await statuses(bucket, 2) == [200, 429]
    window = AnyService(Settings(fixed(0.1), window=2), 1)
    await trio.sleep_until(10.5)
    assert await statuses(window, 3) == [200, 200, 429]
    await trio.sleep_until(11.0)
    assert await statuses(window, 3) == [200, 200, 429]


async def test_calls_beyond_the_servers_wait_and_calls_that_thrash_take_longer(autojump_clock: MockClock) -> None:
    began = trio.current_time()
    await statuses(AnyService(Settings(fixed(1.0), servers=2), 1), 4)
    assert trio.current_time() - began == 2.0
    await statuses(AnyService(Settings(fixed(1.0), thrashes=2), 1), 5)
    assert trio.current_time() - began == 2.0 + 3.0


def test_a_person_chooses_the_fastest_capacity_that_is_refused_seldom() -> None:
    assert _by_hand((100, 1, Settings(fixed(0.1), at_once=8)), (4, 8, 16)) == 8
    assert _by_hand((100, 1, Settings(fixed(0.1))), (4, 8, 16)) == 16


def test_the_services_are_as_many_as_the_page_says_and_always_the_same() -> None:
    assert len(SERVICES) == 35
    first, second = _drawn.__wrapped__(40), _drawn.__wrapped__(40)
    assert [case[:2] for case in first] == [case[:2] for case in second]
