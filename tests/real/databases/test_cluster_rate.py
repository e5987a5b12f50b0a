"""A leased rate whose tokens a real Redis grants."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import Any

import pytest
import trio
from redis import Redis
from redis.exceptions import RedisError

from benchmarks.resilience._counting import most_in_a_second
from tests.support import PATIENCE
from trio_asyncio_io import unordered_wait
from udfs import ClusterLimitError, ClusterRate
from udfs._limits.cluster_gates import LeaseGate
from udfs._limits.cluster_limits import LeasedLimit
from udfs._limits.rates import HORIZON_SECONDS, TokenRequest, TokenSource, pace_of
from udfs._limits.sources import KEPT_SECONDS, RedisSource

pytestmark = pytest.mark.processes

RATE = 100.0
SETTLED = HORIZON_SECONDS + 1 / pace_of(RATE)


def request(name: str, count: int = 5, lead: float = 0.0) -> TokenRequest:
    return TokenRequest(name, RATE, count, lead)


@pytest.fixture
def url(redis_server: str) -> str:
    return f"unix://{redis_server}"


@pytest.fixture
def source(url: str) -> Iterator[RedisSource]:
    made = RedisSource(url)
    yield made
    made._redis.close()


@pytest.fixture
def redis(url: str) -> Iterator[Any]:
    with Redis.from_url(url, decode_responses=True) as client:
        yield client


async def test_it_grants_what_the_source_of_the_driver_grants(source: RedisSource) -> None:
    """The same grants for the same requests at the same instants, from the first one on."""
    local = None
    for each in (request("same"), request("same", 1), request("same", 50), request("same", lead=0.1)) * 2:
        grant = await source.grant(each)
        local = local or TokenSource(grant.epoch, grant.now)
        assert grant == local.grant(grant.now, each)
        await trio.sleep(0.12)
    assert grant.count


async def until(condition: Callable[[], Any]) -> None:
    """Poll, because a server and a log set no event."""
    with trio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await trio.sleep(0.01)


async def granted(source: RedisSource, name: str) -> float:
    """Send requests until there are tokens, and return the instant of the first one."""
    with trio.fail_after(PATIENCE):
        while True:
            grant = await source.grant(request(name))
            if grant.count:
                return grant.start
            await trio.sleep(0.01)


async def flush(redis: Any, name: str) -> None:
    redis.flushall()


async def fail_over(redis: Any, name: str) -> None:
    """Another server has the key, perhaps as it was a while ago."""
    redis.hset(f"cluster_rate:{name}", mapping={"run": "another", "next": time.time() - 60.0})


async def set_the_clock_back(redis: Any, name: str) -> None:
    redis.hincrbyfloat(f"cluster_rate:{name}", "at", 1e6)
    redis.hincrbyfloat(f"cluster_rate:{name}", "next", 1e6)


@pytest.mark.parametrize("lose", [flush, fail_over, set_the_clock_back])
async def test_a_server_that_may_have_forgotten_grants_nothing_until_earlier_tokens_have_expired(
    source: RedisSource, redis: Any, lose: Any
) -> None:
    await granted(source, "lost")
    await lose(redis, "lost")
    first = await source.grant(request("lost"))
    assert first.count == 0
    assert first.start == pytest.approx(first.now + SETTLED)
    assert await granted(source, "lost") == pytest.approx(first.start, abs=0.05)


async def test_the_epoch_is_the_run_of_the_server(source: RedisSource, redis: Any) -> None:
    grant = await source.grant(request("epoch"))
    assert grant.epoch == redis.info("server")["run_id"]


async def test_a_rate_that_was_not_used_for_a_while_is_ready(source: RedisSource, redis: Any) -> None:
    await granted(source, "idle")
    assert KEPT_SECONDS <= redis.ttl("cluster_rate:idle") <= KEPT_SECONDS + 1
    await trio.sleep(2 * HORIZON_SECONDS)
    grant = await source.grant(request("idle"))
    assert (grant.count, grant.start) == (5, grant.now)


async def test_a_server_that_is_away_is_an_error(tmp_path: Path) -> None:
    source = RedisSource(f"unix://{tmp_path}/nowhere")
    with pytest.raises(RedisError):
        await source.open()


def processes(url: str, name: str, number: int, give_up: float = inf) -> list[list[Any]]:
    """The gates of a task in each process, with connections of its own."""
    rate = LeasedLimit(ClusterRate(RATE, by=url, name=name, give_up=give_up))
    return [[LeaseGate(rate, RedisSource(url))] for _ in range(number)]


async def run(gates: list[Any], calls: int, starts: list[float]) -> None:
    async def call(value: int) -> None:
        starts.append(trio.current_time())

    async with unordered_wait(range(calls), call, timeout=inf, gate=gates) as results:
        async for _ in results:
            pass


async def test_processes_share_the_rate_although_the_server_is_flushed_again_and_again(url: str, redis: Any) -> None:
    starts: list[float] = []
    async with trio.open_nursery() as nursery:
        for gates in processes(url, "shared", 3):
            nursery.start_soon(run, gates, 80, starts)
        while len(starts) < 160:
            await trio.sleep(0.7)
            redis.flushall()
    assert len(starts) == 240
    assert most_in_a_second(sorted(starts)) <= RATE


async def test_calls_wait_while_the_server_hangs_and_continue_afterwards(
    url: str, redis: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A stopped process accepts connections and does not answer."""
    starts: list[float] = []
    server = redis.info("server")["process_id"]
    with caplog.at_level("WARNING", "udfs"):
        async with trio.open_nursery() as nursery:
            for gates in processes(url, "hangs", 2):
                nursery.start_soon(run, gates, 100, starts)
            await until(lambda: len(starts) >= 50)
            stopped_after = trio.current_time()
            os.kill(server, signal.SIGSTOP)
            try:
                await until(lambda: sum("is away, so the calls" in each for each in caplog.messages) == 2)
                away = trio.current_time()
            finally:
                os.kill(server, signal.SIGCONT)
    assert not [each for each in starts if stopped_after + 2 * HORIZON_SECONDS < each < away]
    assert len(starts) == 200
    assert most_in_a_second(sorted(starts)) <= RATE
    assert sum("is back after" in each for each in caplog.messages) == 2


async def test_a_task_gives_up_on_a_server_that_is_not_there(tmp_path: Path) -> None:
    (gates,) = processes(f"unix://{tmp_path}/nowhere", "any", 1, give_up=0.5)
    with pytest.raises(ClusterLimitError, match=r"the Redis at unix:///.*/nowhere, .* Check that this Redis is alive"):
        await run(gates, 1, [])


async def test_threads_of_the_user_do_not_delay_a_request(source: RedisSource) -> None:
    is_over = trio.Event()

    async def occupy(limiter: trio.CapacityLimiter) -> None:
        async with limiter:
            await is_over.wait()

    limiter = trio.to_thread.current_default_thread_limiter()
    async with trio.open_nursery() as nursery:
        for _ in range(int(limiter.total_tokens)):
            nursery.start_soon(occupy, limiter)
        await trio.testing.wait_all_tasks_blocked()
        assert (await source.grant(request("threads"))).epoch
        is_over.set()
