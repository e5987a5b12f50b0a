"""A budget that a real Redis leases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from random import Random

import pytest
import trio

from udfs._limits.budgets import DEAD_SECONDS, BudgetRequest, BudgetSource
from udfs._limits.sources import RedisSource

pytestmark = pytest.mark.processes


@pytest.fixture
def source(redis_server: str) -> Iterator[RedisSource]:
    made = RedisSource(f"unix://{redis_server}")
    yield made
    made._redis.close()


def requests(name: str) -> Iterator[BudgetRequest]:
    """Requests of four processes. Some are late, some spend too much."""
    random = Random(3)
    spent = dict.fromkeys("abcd", 0.0)
    numbers = dict.fromkeys("abcd", 0)
    for _ in range(300):
        holder = random.choice("abcd")
        numbers[holder] += random.choice([-1, 1, 1, 1])
        spent[holder] += random.uniform(0.0, 0.5)
        floor = spent[holder] + random.choice([0.0, 0.3])
        need = floor + random.uniform(0.0, 1.0)
        yield BudgetRequest(name, 50.0, holder, numbers[holder], spent[holder], floor, need, need + random.random())


async def test_it_leases_what_the_source_of_the_driver_leases(source: RedisSource) -> None:
    local = BudgetSource()
    for number, request in enumerate(requests("same")):
        grant, expected = await source.grant(request), local.grant(0.0, request)
        assert astuple(grant) == pytest.approx(astuple(expected)), number
    assert local.leased > 50.0


async def test_a_lease_outlives_the_connections(source: RedisSource, redis_server: str) -> None:
    await source.grant(BudgetRequest("kept", 10.0, "a", 1, 0.0, 0.0, 7.0, 7.0))
    other = RedisSource(f"unix://{redis_server}")
    grant = await other.grant(BudgetRequest("kept", 10.0, "b", 1, 0.0, 0.0, 4.0, 4.0))
    await other.aclose()
    assert astuple(grant) == (0.0, 3.0, 7.0)


@pytest.mark.thorough
async def test_the_lease_of_a_process_that_is_silent_is_spent(source: RedisSource) -> None:
    await source.grant(BudgetRequest("silent", 10.0, "a", 1, 0.0, 0.0, 7.0, 7.0))
    await trio.sleep(DEAD_SECONDS + 0.5)
    grant = await source.grant(BudgetRequest("silent", 10.0, "b", 1, 0.0, 0.0, 4.0, 4.0))
    assert astuple(grant) == (0.0, 3.0, 0.0)
