"""A leased rate whose tokens a real Redis grants."""

from __future__ import annotations

import time
from dataclasses import asdict
from math import inf
from pathlib import Path

import pytest
import trio
from redis import Redis
from redis.exceptions import RedisError

from benchmarks.resilience._counting import most_in_a_second
from trio_asyncio_io import unordered_wait
from udfs._rate.cluster_lease import ClusterLease
from udfs._rate.lease import Lease, Request
from udfs._rate.redis_tokens import RedisTokens
from udfs._rate.tokens import HORIZON, REMEMBERED, TokenSource

pytestmark = pytest.mark.processes

RATE = 100.0
ASK = Request(5, lead=0.0, is_back=False)
BACK = Request(5, lead=0.0, is_back=True)


def tokens(socket: str, name: str, settling: float = 0.0, application: str = "one", slots: int = 2) -> RedisTokens:
    return RedisTokens(f"unix://{socket}", name, RATE, settling, application, slots)


async def test_it_grants_what_the_source_of_the_driver_grants(redis_server: str) -> None:
    """The same answers for the same questions at the same instants."""
    remote, local = tokens(redis_server, "same"), None
    for request in (ASK, Request(1, lead=0.0, is_back=False), Request(50, lead=0.0, is_back=False), ASK, BACK):
        grant = (await remote.ask(request)).grant
        local = local or TokenSource(RATE, 0.0, opens=grant.now)
        expected = local.grant(grant.now, **asdict(request))
        assert grant.count == expected.count
        assert grant.start == pytest.approx(expected.start, abs=1e-5)
        assert grant.opens == pytest.approx(expected.opens, abs=1e-5)


async def test_a_server_that_has_forgotten_waits_until_all_have_noticed(redis_server: str) -> None:
    first = (await tokens(redis_server, "new", 7.0).ask(ASK)).grant
    assert (first.count, first.start) == (0, first.opens)
    assert first.opens == pytest.approx(first.now + 7.0)
    second = (await tokens(redis_server, "new", 7.0).ask(BACK)).grant
    assert second.opens == first.opens


async def test_after_an_outage_it_waits_again(redis_server: str) -> None:
    assert (await tokens(redis_server, "outage").ask(ASK)).grant.count == 5
    back = (await tokens(redis_server, "outage", 3.0).ask(BACK)).grant
    assert back.opens == pytest.approx(back.now + 3.0)


async def test_a_clock_that_was_set_back_does_not_stop_the_calls(redis_server: str) -> None:
    remote = tokens(redis_server, "clock")
    ahead = time.time() + 1e6
    with Redis.from_url(remote.url) as client:
        client.hset("cluster_rate:clock", mapping={"next": ahead, "opens": ahead - HORIZON})
    assert (await remote.ask(ASK)).grant.count == 5


async def test_the_key_is_gone_after_a_while(redis_server: str) -> None:
    remote = tokens(redis_server, "forgotten")
    await remote.ask(ASK)
    with Redis.from_url(remote.url) as client:
        assert REMEMBERED <= client.ttl("cluster_rate:forgotten") <= REMEMBERED + 1


async def test_it_states_the_slots_of_all_applications_that_asked_lately(redis_server: str) -> None:
    one, other = (tokens(redis_server, "several", 0.0, *each) for each in (("one", 2), ("other", 6)))
    assert [(await each.ask(ASK)).grant.slots for each in (one, other, one)] == [2, 8, 8]
    with Redis.from_url(one.url) as client:
        client.hset("cluster_rate:several", "application:other", f"6 {time.time() - REMEMBERED - 5.0}")
    assert (await one.ask(ASK)).grant.slots == 2


async def test_a_server_that_forgets_its_tokens_forgets_the_applications(redis_server: str) -> None:
    remote = tokens(redis_server, "restored")
    with Redis.from_url(remote.url) as client:
        client.hset("cluster_rate:restored", "application:other", f"6 {time.time()}")
    assert (await remote.ask(ASK)).grant.slots == 2


async def test_a_server_that_is_away_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RedisError):
        await tokens(str(tmp_path / "nowhere"), "any").ask(ASK)


async def test_processes_share_the_rate(redis_server: str) -> None:
    """Two leases, each with connections of its own, as in two worker processes."""
    starts: list[float] = []

    async def call(value: int) -> None:
        starts.append(trio.current_time())

    async def run() -> None:
        gate = ClusterLease(Lease(RATE, 2), tokens(redis_server, "shared"))
        async with unordered_wait(range(100), call, timeout=inf, gate=gate) as results:
            async for _ in results:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        nursery.start_soon(run)
    assert most_in_a_second(sorted(starts)) <= RATE
