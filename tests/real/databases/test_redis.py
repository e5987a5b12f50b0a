"""from_asyncio with redis.asyncio and a real Redis server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from redis import asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from tests.support import outputs
from trio_asyncio_io import ElementTimeoutError, ordered_wait, unordered_wait
from trio_asyncio_io.adapters import from_asyncio

pytestmark = pytest.mark.processes


class Command:
    """Executes a command for each value, through one client."""

    def __init__(self, socket: str, *command: Any, name: str = "command") -> None:
        self.socket = socket
        self.command = command
        self.name = name

    async def open(self) -> None:
        self.client = redis.Redis(
            unix_socket_path=self.socket,
            client_name=self.name,
            decode_responses=True,
            retry=Retry(NoBackoff(), 0),  # the operator retries
            socket_timeout=None,  # the operator has the timeout (redis 8 has a default of 5 s)
        )

    async def invoke(self, *arguments: Any) -> Any:
        return await self.client.execute_command(*self.command, *arguments)

    async def close(self) -> None:
        await self.client.aclose()


class Pipeline(Command):
    """Gets several keys in one pipeline."""

    async def invoke(self, *keys: int) -> list[str]:
        async with self.client.pipeline(transaction=False) as pipeline:
            for key in keys[0]:
                pipeline.get(f"key:{key}")
            found: list[str] = await pipeline.execute()
            return found


@pytest.fixture
async def execute(redis_server: str) -> AsyncIterator[Callable[..., Awaitable[Any]]]:
    """Executes commands of the test itself, in a client of its own."""
    adapter: from_asyncio[Any] = from_asyncio(Command(redis_server, name="test"))
    await adapter.open()
    await adapter.invoke("FLUSHALL")
    yield adapter.invoke
    await adapter.close()


async def clients(execute: Any, name: str, flag: str = "") -> int:
    """The number of clients of this name on the server. The flag `b` marks those that a command blocks."""
    found = [dict(part.split("=", 1) for part in line.split()) for line in lines(await execute("CLIENT LIST"))]
    return sum(client["name"] == name and flag in client["flags"] for client in found)


def lines(listed: Any) -> list[str]:
    if isinstance(listed, str):
        return listed.splitlines()
    return [" ".join(f"{key}={value}" for key, value in client.items()) for client in listed]


async def test_fifty_concurrent_pipelines_are_emitted_in_order(redis_server: str, execute: Any) -> None:
    await execute("MSET", *(part for key in range(1_000) for part in (f"key:{key}", f"value {key}")))
    groups = [range(start, start + 5) for start in range(0, 1_000, 5)]
    async with ordered_wait(groups, from_asyncio(Pipeline(redis_server)), capacity=50, timeout=30.0) as results:
        found = [result async for result in results]
        assert results.statistics().peak_running == 50
    assert found == [[f"value {key}" for key in group] for group in groups]


async def test_blocking_commands_run_concurrently(redis_server: str, execute: Any, eventually: Any) -> None:
    async def all_block() -> bool:
        return await clients(execute, "waiting", "b") == 20

    pop = from_asyncio(Command(redis_server, "BLPOP", "queue", name="waiting"))
    async with unordered_wait([0] * 20, pop, capacity=20, timeout=30.0) as results:
        await eventually(all_block)
        await execute("RPUSH", "queue", *range(20))
        found = [result async for result in results]
    assert sorted(int(value) for _, value in found) == list(range(20))


async def test_a_deadline_ends_a_blocking_command_on_the_server(
    redis_server: str, execute: Any, eventually: Any
) -> None:
    blocked: list[int] = []

    async def one_blocks() -> bool:
        return await clients(execute, "popper", "b") == 1

    async def none_blocks() -> bool:
        return await clients(execute, "popper", "b") == 0

    async def on_timeout(value: int) -> str:
        await eventually(none_blocks)
        return "nothing came"

    pop = from_asyncio(Command(redis_server, "BLPOP", "empty", name="popper"))
    async with ordered_wait([0], pop, timeout=1.0, on_timeout=on_timeout) as results:
        await eventually(one_blocks)
        blocked.append(1)
        assert await results.receive() == "nothing came"
        assert await execute("RPUSH", "empty", "late") == 1
        assert await execute("LLEN", "empty") == 1
    assert blocked == [1]


async def test_no_client_is_left_after_the_block(redis_server: str, execute: Any, eventually: Any) -> None:
    async def all_block() -> bool:
        return await clients(execute, "left", "b") == 5

    async def none_is_left() -> bool:
        return await clients(execute, "left") == 0

    pop = from_asyncio(Command(redis_server, "BLPOP", "empty", name="left"))
    async with unordered_wait([0] * 5, pop, timeout=120.0):
        await eventually(all_block)
    await eventually(none_is_left)


async def test_an_error_of_the_server_is_raised_unchanged(redis_server: str, execute: Any) -> None:
    await execute("SET", "text", "not a number")
    with pytest.raises(redis.ResponseError, match="not an integer"):
        await outputs(ordered_wait(["text"], from_asyncio(Command(redis_server, "INCR")), timeout=30.0))


async def test_a_missing_server_fails_the_element(tmp_path: Any) -> None:
    nowhere = from_asyncio(Command(str(tmp_path / "nowhere.sock"), "GET"))
    with pytest.raises(redis.ConnectionError):
        await outputs(ordered_wait(["key"], nowhere, timeout=30.0))


async def test_without_on_timeout_the_operator_raises_its_timeout_error(redis_server: str) -> None:
    pop = from_asyncio(Command(redis_server, "BLPOP", "nothing"))
    with pytest.raises(ElementTimeoutError):
        await outputs(ordered_wait([0], pop, timeout=0.2))
