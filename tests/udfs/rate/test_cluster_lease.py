"""The gate of a leased rate with the real operator, on a virtual clock."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from benchmarks.resilience._counting import most_in_a_second
from benchmarks.resilience._leases import SimulatedSource
from trio_asyncio_io import unordered_wait
from udfs._rate.cluster_lease import MAX_LEASES, ClusterLease, lease_of_process
from udfs._rate.driver_tokens import DriverTokens
from udfs._rate.lease import Lease


async def refuse() -> None:
    raise ConnectionRefusedError


async def starts_of(gates: list[ClusterLease], calls: int) -> list[float]:
    """The instants of the calls of operators, one for each gate."""
    starts: list[float] = []

    async def call(value: int) -> None:
        starts.append(trio.current_time())
        await trio.sleep(0.01)

    async def run(gate: ClusterLease) -> None:
        async with unordered_wait(range(calls), call, timeout=0.1, gate=gate) as results:
            async for _ in results:
                pass

    async with trio.open_nursery() as nursery:
        for gate in gates:
            nursery.start_soon(run, gate)
    return starts


async def test_processes_share_the_rate_of_a_source(autojump_clock: MockClock) -> None:
    source = SimulatedSource(100, 4)
    starts = await starts_of([ClusterLease(Lease(100, 4), source) for _ in range(2)], 300)
    assert most_in_a_second(starts) <= 100
    assert starts[-1] - starts[0] == pytest.approx(6.0, rel=0.04)


@pytest.mark.parametrize("respond", [refuse, trio.sleep_forever], ids=["refuses", "hangs"])
async def test_without_a_source_each_process_starts_its_share(
    autojump_clock: MockClock, respond: Any, caplog: pytest.LogCaptureFixture
) -> None:
    source = SimulatedSource(100, 4)
    source.respond = respond
    began = trio.current_time()
    with caplog.at_level("WARNING", "udfs"):
        starts = await starts_of([ClusterLease(Lease(100, 4), source) for _ in range(2)], 100)
    assert ["the source of the cluster_rate is away" in each for each in caplog.messages] == [True, True]
    assert starts[0] - began < 1.0
    assert starts[-1] - starts[0] == pytest.approx(99 / (0.98 * 25), rel=0.01)


async def test_an_operator_that_ends_while_it_asks_leaves_nothing_behind(autojump_clock: MockClock) -> None:
    """The next operator asks again."""
    source = SimulatedSource(100, 4)
    source.respond = trio.sleep_forever
    gate = ClusterLease(Lease(100, 4), source)
    with trio.move_on_after(0.1):
        await starts_of([gate], 1)
    source.respond = trio.lowlevel.checkpoint
    await trio.sleep(5.0)
    assert len(await starts_of([gate], 10)) == 10
    assert len(source.asked) >= 2


def test_tasks_of_a_process_that_use_equal_tokens_share_a_lease() -> None:
    first, second, other = (DriverTokens("127.0.0.1", 1, "secret", name) for name in ("a", "a", "b"))
    assert lease_of_process(10, 2, 1.0, first) is lease_of_process(10, 2, 1.0, second)
    assert lease_of_process(10, 2, 1.0, first) is not lease_of_process(10, 2, 1.0, other)


def test_a_process_keeps_the_leases_that_were_used_last() -> None:
    numbered = [DriverTokens("127.0.0.1", 2, "secret", str(number)) for number in range(MAX_LEASES + 1)]
    kept = [lease_of_process(10, 2, 1.0, tokens) for tokens in numbered]
    assert lease_of_process(10, 2, 1.0, numbered[-1]) is kept[-1]
    assert lease_of_process(10, 2, 1.0, numbered[0]) is not kept[0]
