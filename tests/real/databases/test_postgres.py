"""from_asyncio with asyncpg and a real PostgreSQL server: one pool, concurrent queries, and deadlines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import FixedDelay, ordered_wait, unordered_wait
from trio_asyncio_io.adapters import from_asyncio

pytestmark = pytest.mark.processes


class Query:
    """Executes a statement for each value, through one pool."""

    def __init__(self, host: str, statement: str, *, name: str = "query", size: int = 10) -> None:
        self.host = host
        self.statement = statement
        self.name = name
        self.size = size

    async def open(self) -> None:
        settings = {"application_name": self.name}
        self.pool = await asyncpg.create_pool(
            host=self.host, user="postgres", min_size=1, max_size=self.size, server_settings=settings
        )

    async def invoke(self, value: Any) -> Any:
        return await self.pool.fetchval(self.statement, value)

    async def close(self) -> None:
        await self.pool.close()


Execute = Callable[..., Awaitable[Any]]


@pytest.fixture
async def execute(postgres: str) -> AsyncIterator[Execute]:
    """Executes statements of the test itself, in a connection of its own."""
    connection = Connection(postgres)
    adapter: from_asyncio[Any] = from_asyncio(connection)
    await adapter.open()
    yield adapter.invoke
    await adapter.close()


class Connection:
    def __init__(self, host: str) -> None:
        self.host = host

    async def open(self) -> None:
        self.connection = await asyncpg.connect(host=self.host, user="postgres")

    async def invoke(self, statement: str, *arguments: Any) -> Any:
        return await self.connection.fetchval(statement, *arguments)

    async def close(self) -> None:
        await self.connection.close()


ACTIVE = "select count(*) from pg_stat_activity where application_name = $1 and state = 'active'"
# A query that is still being prepared is active, too, and the server would ignore its cancellation
SLEEPING = f"{ACTIVE} and wait_event = 'PgSleep'"
CONNECTED = "select count(*) from pg_stat_activity where application_name = $1"


async def test_concurrent_queries_through_one_pool_are_emitted_in_order(postgres: str, execute: Execute) -> None:
    squares = from_asyncio(Query(postgres, "select $1::int * $1::int", name="squares", size=8))
    async with ordered_wait(range(500), squares, capacity=50, timeout=30.0) as results:
        assert [result async for result in results] == [value * value for value in range(500)]
        assert results.statistics().peak_running == 50
        assert 1 < await execute(CONNECTED, "squares") <= 8
    assert await execute(CONNECTED, "squares") == 0


async def test_queries_run_concurrently_on_the_server(postgres: str, execute: Execute, eventually: Any) -> None:
    """Each of ten queries waits for a lock, which is released once all ten wait."""
    await execute("select pg_advisory_lock(1)")
    waiting = from_asyncio(Query(postgres, "select $1::int, pg_advisory_xact_lock_shared(1)", name="locked"))
    async with unordered_wait(range(10), waiting, capacity=10, timeout=30.0) as results:

        async def all_wait() -> bool:
            return bool(await execute(f"{ACTIVE} and wait_event_type = 'Lock'", "locked") == 10)

        await eventually(all_wait)
        await execute("select pg_advisory_unlock(1)")
        assert sorted([result async for result in results]) == list(range(10))


async def test_an_error_of_the_server_is_raised_unchanged(postgres: str) -> None:
    inverse = from_asyncio(Query(postgres, "select 1 / $1::int"))
    with pytest.raises(asyncpg.DivisionByZeroError) as caught:
        await outputs(ordered_wait([2, 0], inverse, timeout=30.0))
    assert isinstance(caught.value, asyncpg.PostgresError)
    assert caught.value.__notes__ == ["element 1, 0, attempt 1"]


async def test_a_deadline_stops_the_query_on_the_server(
    postgres: str, execute: Execute, eventually: Any, mock_clock: MockClock
) -> None:
    """The query has ended when the element is emitted, so the test does not poll for it."""
    sleeping = from_asyncio(Query(postgres, "select pg_sleep($1)", name="sleeper"))

    async def stopped(value: float) -> str:
        return "stopped"

    async def all_run() -> bool:
        return bool(await execute(SLEEPING, "sleeper") == 3)

    async with unordered_wait([60.0] * 3, sleeping, timeout=5.0, on_timeout=stopped) as results:
        await eventually(all_run)
        mock_clock.jump(5.0)
        assert [await results.receive() for _ in range(3)] == ["stopped"] * 3
        assert await execute(ACTIVE, "sleeper") == 0
        assert await execute(CONNECTED, "sleeper") == 3


async def test_the_connection_of_a_cancelled_query_is_used_again(
    postgres: str, execute: Execute, eventually: Any, mock_clock: MockClock
) -> None:
    sleeping = from_asyncio(Query(postgres, "select pg_backend_pid() from pg_sleep($1)", size=1, name="one"))
    async with ordered_wait([0.0, 60.0, 0.0], sleeping, capacity=1, timeout=5.0, on_error="skip") as results:
        first = await results.receive()
        await eventually(lambda: execute(SLEEPING, "one"))
        mock_clock.jump(5.0)
        assert await results.receive() == first


async def test_leaving_the_block_stops_the_queries_on_the_server(
    postgres: str, execute: Execute, eventually: Any
) -> None:
    sleeping = from_asyncio(Query(postgres, "select pg_sleep($1)", name="left"))

    async def all_run() -> bool:
        return bool(await execute(SLEEPING, "left") == 5)

    async with unordered_wait([60.0] * 5, sleeping, timeout=120.0):
        await eventually(all_run)
    assert await execute(CONNECTED, "left") == 0


class Increment(Query):
    """Reads and writes in one serializable transaction. Concurrent ones conflict."""

    async def invoke(self, value: int) -> None:
        async with self.pool.acquire() as connection, connection.transaction(isolation="serializable"):
            count = await connection.fetchval("select count from counter")
            await asyncio.sleep(0.001)
            await connection.execute("update counter set count = $1", count + value)


async def test_serialization_failures_are_retried_until_all_transactions_commit(
    postgres: str, execute: Execute
) -> None:
    await execute("create table counter as select 0 as count")
    retry = FixedDelay(100, 0.005, retry_on=asyncpg.SerializationError)
    increment = from_asyncio(Increment(postgres, ""))
    async with unordered_wait([1] * 20, increment, capacity=4, timeout=60.0, retry=retry) as results:
        assert len([result async for result in results]) == 20
        assert results.statistics().retried > 0
    assert await execute("select count from counter") == 20


class Slow(Query):
    """Has a `timeout` method that uses the pool."""

    async def timeout(self, value: float) -> str:
        return str(await self.pool.fetchval("select 'too slow'"))


async def test_the_timeout_method_may_use_the_pool(
    postgres: str, execute: Execute, eventually: Any, mock_clock: MockClock
) -> None:
    slow = from_asyncio(Slow(postgres, "select pg_sleep($1)", size=1, name="slow"))
    async with ordered_wait([60.0], slow, timeout=5.0) as results:
        await eventually(lambda: execute(SLEEPING, "slow"))
        mock_clock.jump(5.0)
        assert await results.receive() == "too slow"
