"""The gate of a leased rate with the real operator, on a virtual clock."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from typing import Any

import pytest
import trio
from pyspark import cloudpickle
from trio.testing import MockClock

from benchmarks.resilience._counting import most_in_a_second
from benchmarks.resilience._leases import SimulatedSource, leases
from tests.udfs.http.serving import refusing
from trio_asyncio_io import unordered_wait
from trio_asyncio_io.gates import Gate
from udfs import ClusterBudget, ClusterLimitError, ClusterRate
from udfs._limits.cluster_gates import ClusterShare, LeaseGate
from udfs._limits.cluster_limits import LeasedLimit, ServerAddress, TaskShare
from udfs._limits.lease import GRANT_SECONDS, RETRY_SECONDS
from udfs._limits.limit_server import LimitServer
from udfs._limits.rates import STALE_SECONDS, RateLease
from udfs._limits.sources import RedisSource, source_of
from udfs._trio_thread.gates import MAX_LEASES, gate_of


async def refuse() -> None:
    raise ConnectionRefusedError("nobody listens.")  # with a period, as redis-py's messages


AWAY = pytest.mark.parametrize("respond", [refuse, trio.sleep_forever], ids=["refuses", "hangs"])


async def run(gates: Sequence[Gate], calls: int, starts: list[float]) -> Any:
    """Run an operator, and return what limited it."""

    async def call(value: int) -> None:
        starts.append(trio.current_time())
        await trio.sleep(0.01)

    async with unordered_wait(range(calls), call, timeout=0.1, gate=gates) as results:
        async for _ in results:
            pass
    return results.explain()


async def starts_of(gates: list[Sequence[Gate]], calls: int) -> list[float]:
    """The instants of the calls of operators, one for each process."""
    starts: list[float] = []
    async with trio.open_nursery() as nursery:
        for each in gates:
            nursery.start_soon(run, each, calls, starts)
    return starts


async def test_processes_share_the_rate_of_a_source(autojump_clock: MockClock) -> None:
    starts = await starts_of(leases(SimulatedSource(), 100, 2), 300)
    assert most_in_a_second(starts) <= 100
    assert starts[-1] - starts[0] == pytest.approx(6.0, rel=0.05)


@AWAY
async def test_calls_wait_while_the_source_is_away_and_the_verdict_names_the_reason(
    autojump_clock: MockClock, respond: Any, caplog: pytest.LogCaptureFixture
) -> None:
    source = SimulatedSource()
    source.respond = respond
    (gates,) = leases(source, 100, 1)
    starts: list[float] = []
    verdicts = []

    async def operate() -> None:
        verdicts.append(await run(gates, 50, starts))

    with caplog.at_level("WARNING", "udfs"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(operate)
            await trio.sleep(30.0)
            assert not starts
            source.respond = trio.lowlevel.checkpoint
    (verdict,) = verdicts
    assert verdict.limit == "gate"
    assert "ClusterRateSourceAway" in str(verdict)
    away, back = caplog.messages
    assert away.startswith(
        "the driver at driver:7077 is away, so the calls of ClusterRate(100, by='lease', name='simulated') wait: "
    )
    assert back.startswith("the driver at driver:7077 is back after 3")


@AWAY
async def test_a_task_fails_when_the_source_has_been_away_for_too_long(autojump_clock: MockClock, respond: Any) -> None:
    source = SimulatedSource()
    source.respond = respond
    (gates,) = leases(source, 100, 1, give_up=20.0)
    began = trio.current_time()
    with pytest.raises(ClusterLimitError) as caught:
        await run(gates, 50, [])
    assert 20.0 <= trio.current_time() - began <= 20.0 + 5.0 + RETRY_SECONDS
    message = str(caught.value)
    assert message.startswith("the driver at driver:7077, which is the source of ClusterRate(100, by='lease'")
    assert "give_up=20. The last attempt failed with" in message
    assert message.endswith("block them")
    assert "listens.." not in message


async def run_at(port: int) -> None:
    """Run an operator whose rate is leased at this port, until its first request has failed."""
    leased = LeasedLimit(ClusterRate(100, by="lease", give_up=1e-9), ServerAddress("localhost", port, "secret"))
    await run([LeaseGate(leased, source_of(leased))], 1, [])


async def test_the_error_of_a_server_that_is_gone_has_the_reason() -> None:
    with (
        refusing() as port,
        pytest.raises(ClusterLimitError, match=r"failed with ConnectionRefusedError: .*\. Check that the driver"),
    ):
        await run_at(port)


async def test_a_task_that_reaches_another_program_is_told_to_choose_another_port() -> None:
    with (
        closing(LimitServer("localhost", lambda: False)) as other,
        pytest.raises(ClusterLimitError, match=r"does not know the secret .*\. Choose another port for the driver"),
    ):
        await run_at(other.listen())


async def run_task(gates: Sequence[Gate], calls: int, starts: list[float]) -> None:
    """Run a new task of the process that has these gates."""
    [gate] = gates
    assert isinstance(gate, LeaseGate)
    async with gate.in_use():
        await run(gates, calls, starts)


async def test_a_later_task_fails_after_one_more_attempt(autojump_clock: MockClock) -> None:
    """The process knows that the source is away, and Spark has tried the task again."""
    source = SimulatedSource()
    source.respond = refuse
    (gates,) = leases(source, 100, 1, give_up=20.0)
    with pytest.raises(ClusterLimitError):
        await run_task(gates, 1, [])
    began = trio.current_time()
    with pytest.raises(ClusterLimitError):
        await run_task(gates, 1, [])
    assert 0 < trio.current_time() - began <= 2 * RETRY_SECONDS
    source.respond = trio.lowlevel.checkpoint
    starts: list[float] = []
    await run_task(gates, 20, starts)
    assert len(starts) == 20


async def test_time_without_calls_does_not_count_towards_give_up(autojump_clock: MockClock) -> None:
    source = SimulatedSource()
    source.respond = refuse
    (gates,) = leases(source, 100, 1, give_up=20.0)
    with trio.move_on_after(2.0):
        await run(gates, 1, [])
    await trio.sleep(STALE_SECONDS + 100.0)
    began = trio.current_time()
    with pytest.raises(ClusterLimitError, match="has granted no call for 20 s"):
        await run(gates, 1, [])
    assert trio.current_time() - began >= 20.0


async def test_one_answer_that_is_lost_is_not_an_outage(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    source = SimulatedSource()
    (gates,) = leases(source, 100, 1)
    starts: list[float] = []

    async def lose_this_one() -> None:
        source.respond = trio.lowlevel.checkpoint
        await trio.sleep_forever()

    async def lose_one() -> None:
        await trio.sleep(1.0)
        source.respond = lose_this_one

    with caplog.at_level("WARNING", "udfs"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lose_one)
            nursery.start_soon(run, gates, 300, starts)
    assert max(later - start for start, later in pairwise(starts)) >= GRANT_SECONDS / 2
    assert most_in_a_second(starts) <= 100
    assert not caplog.messages


async def test_a_connection_is_closed_when_nothing_needs_it(autojump_clock: MockClock) -> None:
    source = SimulatedSource()
    (gates,) = leases(source, 100, 1)
    for _ in range(2):
        await run(gates, 20, [])
        assert source.connections == 1
        await trio.sleep(RateLease.idle_seconds + 0.1)
        assert source.connections == 0


@AWAY
async def test_a_connection_that_fails_is_closed(autojump_clock: MockClock, respond: Any) -> None:
    source = SimulatedSource()
    (gates,) = leases(source, 100, 1)
    await run(gates, 20, [])
    source.respond = respond
    with trio.move_on_after(10.0):
        await run(gates, 100, [])
    await trio.sleep(10.0)
    assert source.connections == 0


async def test_an_operator_that_ends_while_a_request_is_sent_leaves_nothing_behind(autojump_clock: MockClock) -> None:
    source = SimulatedSource()
    source.respond = trio.sleep_forever
    (gates,) = leases(source, 100, 1)
    with trio.move_on_after(0.1):
        await run(gates, 1, [])
    source.respond = trio.lowlevel.checkpoint
    starts: list[float] = []
    await run(gates, 10, starts)
    assert len(starts) == 10


def leased(name: str) -> LeasedLimit:
    return LeasedLimit(ClusterRate(10, by="lease", name=name), ServerAddress("127.0.0.1", 1, "secret"))


async def lease_of(name: str) -> Gate:
    """The gate of a task, after its end."""
    async with gate_of(leased(name)) as gate:
        return gate


async def test_tasks_of_a_process_that_use_one_rate_share_a_lease() -> None:
    assert await lease_of("a") is await lease_of("a")
    assert await lease_of("a") is not await lease_of("b")


async def test_queries_that_weigh_the_calls_of_one_budget_differently_have_a_lease_each() -> None:
    price = 0.01
    address = ServerAddress("127.0.0.1", 1, "secret")
    one, other = (
        cloudpickle.dumps(LeasedLimit(ClusterBudget(10, weight=weight, name="books"), address))
        for weight in (lambda text: price * len(text), lambda text: 2 * price * len(text))
    )
    async with gate_of(cloudpickle.loads(one)) as gate, gate_of(cloudpickle.loads(one)) as of_next_task:
        assert gate is of_next_task
    async with gate_of(cloudpickle.loads(other)) as of_other_query:
        assert gate is not of_other_query


async def test_a_process_keeps_the_leases_that_were_used_last() -> None:
    first, *_, last = [await lease_of(str(number)) for number in range(MAX_LEASES + 1)]
    assert await lease_of(str(MAX_LEASES)) is last
    assert await lease_of("0") is not first


@pytest.mark.parametrize("rate", [TaskShare(7), TaskShare(7, len, "tokens"), leased("a")])
async def test_the_driver_knows_the_label_of_the_gate(rate: TaskShare | LeasedLimit) -> None:
    """It makes columns for it, and does not import it."""
    async with gate_of(rate) as gate:
        assert gate.label == rate.gate_labels[0]


async def test_each_task_has_a_share_of_its_own() -> None:
    async with gate_of(TaskShare(7)) as one, gate_of(TaskShare(7)) as other:
        assert isinstance(one, ClusterShare)
        assert one is not other
        assert one.calls == 7


@pytest.mark.parametrize("url", ["redis://:hidden@127.0.0.1:1/0", "redis://127.0.0.1:1/0?password=hidden"])
async def test_an_error_shows_the_address_of_a_redis_without_its_password(url: str) -> None:
    rate = LeasedLimit(ClusterRate(10, by=url, name="weather", give_up=0.5))
    with pytest.raises(ClusterLimitError, match=r"the Redis at redis://(\*\*\*@)?127\.0\.0\.1:1/0, which is") as caught:
        await run([LeaseGate(rate, RedisSource(url))], 1, [])
    assert "hidden" not in str(caught.value)
    assert "Check that this Redis is alive" in str(caught.value)
