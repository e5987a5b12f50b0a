"""from_asyncio with redis.asyncio and a real Redis server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from redis import asyncio as redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from trio_asyncio_io import ordered_wait, unordered_wait
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
