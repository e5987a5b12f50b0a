"""Functions: callables and objects, with adapters and policies around them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, assert_type

from trio_asyncio_io import AsyncFunction, AsyncWaitOperator, Results, ordered_wait, shared
from trio_asyncio_io.adapters import in_thread
from trio_asyncio_io.integration import is_async
from trio_asyncio_io.policies import cached
from trio_asyncio_io.testing import Call, Recorder, Scripted, Step, fails_first


class Length(AsyncFunction[str, int]):
    def __init__(self, unit: int) -> None:
        self.unit = unit

    async def open(self) -> None:
        self.calls = 0

    async def invoke(self, value: str) -> int:
        self.calls += 1
        return len(value) // self.unit

    async def timeout(self, value: str) -> int:
        return 0

    async def close(self) -> None:
        del self.calls


class Weather(AsyncFunction[Any, float]):
    """A function of several columns, for a UDF."""

    async def invoke(self, origin: str, hour: int) -> float:
        return hour / len(origin)


class WeatherOrNothing(AsyncFunction[Any, float | None]):
    async def invoke(self, origin: str, hour: int | None = None, *, unit: str = "F") -> float | None:
        return None if hour is None else 1.0


async def an_object() -> None:
    async with ordered_wait(["a"], Length(2), timeout=5.0) as results:
        assert_type(results, Results[int, str])
    async with AsyncWaitOperator(Length(2), timeout=5.0) as operator:
        assert_type(operator, AsyncWaitOperator[str, int])
    assert_type(await Length(2).invoke("a"), int)
    assert_type(await Weather().invoke("EWR", 3), float)
    assert_type(await WeatherOrNothing().invoke("EWR", unit="C"), float | None)
    # An override keeps its own parameters, so these calls are refused
    await Length(2).invoke(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await Weather().invoke("EWR")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


class Incomplete(AsyncFunction[str, int]):
    async def open(self) -> None: ...


def without_invoke() -> None:
    Incomplete()  # type: ignore[abstract]  # pyright: ignore[reportAbstractUsage]


async def other_callables() -> None:
    async def scaled(factor: float, value: int) -> float:
        return factor * value

    class Doubled:
        async def __call__(self, value: int) -> int:
            return 2 * value

    async with ordered_wait([1], partial(scaled, 0.5), timeout=5.0) as scaled_results:
        assert_type(scaled_results, Results[float, int])
    async with ordered_wait([1], Doubled(), timeout=5.0) as doubled_results:
        assert_type(doubled_results, Results[int, int])
    async with ordered_wait([1], in_thread(hex), timeout=5.0) as texts:
        assert_type(texts, Results[str, int])
    assert_type(is_async(scaled), bool)

    def blocking(value: int) -> int:
        return value

    ordered_wait([1], blocking, timeout=5.0)  # type: ignore[arg-type, list-item]  # pyright: ignore[reportArgumentType, reportCallIssue]


async def helpers_for_tests() -> None:
    script = Scripted({"a": Step(1.0), "b": fails_first(2, OSError)}, default=Step(result=0))
    recorder = Recorder(script)
    async with ordered_wait(["a"], recorder, timeout=5.0):
        assert_type(recorder.peak_running, int)
    assert_type(recorder.calls, list[Call[str]])
    assert_type(recorder.calls[0].ended, float | None)


@asynccontextmanager
async def connected() -> AsyncIterator[Length]:
    yield Length(1)


@contextmanager
def locked() -> Iterator[bytes]:
    yield b""


async def made() -> Length:
    return Length(1)


async def shared_resources() -> None:
    async with shared("connected", connected, open_timeout=5.0) as connection:
        assert_type(connection, Length)
    async with shared("locked", locked) as lock:
        assert_type(lock, bytes)
    async with shared("made", made) as result:
        assert_type(result, Length)
    async with shared("policy", lambda: cached(Length(2))) as lookup:
        assert_type(await lookup("a"), int)
    shared("no callable", 3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
