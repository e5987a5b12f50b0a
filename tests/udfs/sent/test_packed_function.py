"""Packed functions, and functions that cannot be packed."""

from __future__ import annotations

import pickle
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest
import trio
from pyspark import Broadcast, cloudpickle
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType

from tests.support import stable_id
from trio_asyncio_io import AsyncFunction
from trio_asyncio_io.adapters import in_thread
from trio_asyncio_io.policies import cached
from udfs import async_pandas_udf
from udfs._sent.function import pack


async def look_up(origin: str, hour: int) -> str:
    return f"{origin} {hour}"


class Lookup(AsyncFunction[str, str]):
    def __init__(self, url: str = "http://here") -> None:
        self.url = url

    async def invoke(self, origin: str) -> str:
        return self.url + origin


class AnyObject:
    """Has an async `invoke`, and nothing else."""

    async def invoke(self, tailnum: str) -> str:
        return tailnum


def test_a_packed_function_can_be_pickled_and_called() -> None:
    packed = pickle.loads(pickle.dumps(pack(look_up)))
    assert trio.run(packed.unpack(), "EWR", 5) == "EWR 5"
    assert packed.name == "look_up"


def test_only_equal_functions_have_equal_digests() -> None:
    """Tasks with equal digests share an open instance."""
    assert pack(Lookup()).digest == pack(Lookup()).digest
    assert pack(Lookup()).digest != pack(Lookup("http://there")).digest
    assert pack(look_up).digest != pack(Lookup()).digest


def test_broadcast_variables_are_pickled_with_each_command_and_not_before(tmp_path: Path) -> None:
    """Spark sends a broadcast variable with the command whose pickle has it."""
    pickled: list[str] = []

    class OfDriver(Broadcast[Any]):
        def __reduce__(self) -> Any:
            pickled.append("once more")
            return partial(Broadcast, path=str(tmp_path / "names")), ()

    (tmp_path / "names").write_bytes(pickle.dumps({1: "one"}))
    names = OfDriver(path=str(tmp_path / "names"))

    async def name(value: int) -> str:
        return names.value[value]  # type: ignore[no-any-return]

    packed = pack(name)
    assert trio.run(packed.unpack(), 1) == "one"  # on the driver, as a rehearsal does
    assert not pickled
    for commands in (1, 2):
        assert trio.run(pickle.loads(cloudpickle.dumps(packed)).unpack(), 1) == "one"
        assert len(pickled) == commands


def test_functions_with_different_broadcast_variables_are_not_equal() -> None:
    def made(variable: Any) -> Any:
        async def name(value: int) -> str:
            return variable.value[value] + variable.value[-value]  # type: ignore[no-any-return]

        return name

    first, second = Broadcast(path="first"), Broadcast(path="second")  # type: ignore[var-annotated]
    assert pack(made(first)) == pack(made(first))
    assert pack(made(first)).digest != pack(made(second)).digest


def test_each_unpack_returns_a_new_instance() -> None:
    packed = pack(Lookup())
    assert packed.unpack() is not packed.unpack()


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (look_up, "look_up"),
        (Lookup(), "Lookup"),
        (AnyObject(), "AnyObject"),
        (cached(look_up), "look_up"),
        (partial(look_up, hour=5), "look_up"),
        (cached(partial(partial(look_up, "EWR"), hour=5)), "look_up"),
    ],
    ids=stable_id,
)
def test_the_name_is_that_of_the_users_function(function: Any, name: str) -> None:
    assert pack(function).name == name


@pytest.mark.parametrize("function", [partial(look_up, "EWR"), in_thread(len), AnyObject()], ids=stable_id)
def test_any_async_callable_is_accepted(function: Any) -> None:
    assert pack(function).payload


async def generator(value: int) -> AsyncIterator[int]:
    yield value


class Generator:
    async def invoke(self, value: int) -> AsyncIterator[int]:
        yield value


def rows(value: int) -> Iterator[int]:
    yield value


class Opens(AnyObject):
    def open(self) -> None:
        """Not async, by mistake."""


class Closes(AnyObject):
    def close(self) -> None:
        """Not async, by mistake."""


def timed(function: Any) -> Any:
    """A decorator that is not async, as many packages have them."""

    @wraps(function)
    def call(*inputs: Any) -> Any:
        return function(*inputs)

    return call


class OpensThroughADecorator(AnyObject):
    @timed
    async def open(self) -> None:
        """Async inside."""


@pytest.mark.parametrize(
    "function", [timed(look_up), lambda value: look_up("EWR", value), OpensThroughADecorator()], ids=stable_id
)
def test_a_function_that_may_return_a_coroutine_is_accepted(function: Any) -> None:
    assert pack(function).payload


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (len, r"the function must be async, got len\. .*`async def`.*in_thread\(len\)"),
        (rows, "the function must be async, got rows"),
        ("look_up", "the function must be an async callable or an AsyncFunction, got 'look_up'"),
        (None, "the function must be an async callable or an AsyncFunction, got None"),
        (Opens(), r"^open\(\) of Opens must be async: declare it with `async def open\(self\)`$"),
        (Closes(), r"^close\(\) of Closes must be async: declare it with `async def close\(self\)`$"),
        (generator, "the function must return its result, but generator is an async generator, because it contains"),
        (Generator(), "the function must return its result, but Generator is an async generator"),
        (async_pandas_udf(look_up, "long", timeout=1.0), "must be async, got the UDF look_up: give the async function"),
        (udf(lambda value: value, LongType()), "must be async, got the UDF <lambda>: give the async function"),
        (Lookup, r"the function must be an instance, got the class Lookup: write Lookup\(\)"),
    ],
    ids=stable_id,
)
def test_a_function_that_is_not_async_is_refused_with_advice(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        pack(function)


def test_a_coroutine_is_refused_with_advice() -> None:
    coroutine = look_up("EWR", 1)
    with pytest.raises(TypeError, match=r"got the result of calling look_up: give look_up itself$"):
        pack(coroutine)
    coroutine.close()


def test_the_error_names_the_parameter() -> None:
    with pytest.raises(TypeError, match="on_timeout must be async, got len"):
        pack(len, "on_timeout")


def test_the_error_names_a_captured_variable_and_shows_the_pattern() -> None:
    client = threading.Lock()

    async def locked(value: int) -> int:
        with client:
            return value

    with pytest.raises(TypeError) as caught:
        pack(locked)
    message = str(caught.value)
    assert "the function locked captures something (client: lock) that cannot be sent to the workers" in message
    assert "async def open(self):" in message
    assert "class Lookup(AsyncFunction):" in message


class DataFrame:
    """Cannot be sent, as Spark's."""

    def __reduce__(self) -> str:
        raise RuntimeError("only on the driver")


DataFrame.__module__ = "pyspark.sql.classic.dataframe"


def test_a_captured_dataframe_has_advice_of_its_own() -> None:
    flights = DataFrame()

    async def counts(value: int) -> Any:
        return flights, value

    with pytest.raises(TypeError, match=r"captures something \(flights: DataFrame\)") as caught:
        pack(counts)
    message = str(caught.value)
    assert message.endswith("Join the DataFrame, or collect its rows on the driver and capture those.")
    assert "async def open" not in message


def test_the_error_names_an_attribute_or_a_bound_argument() -> None:
    with pytest.raises(TypeError, match=r"Lookup captures something \(url: lock\)"):
        pack(Lookup(threading.Lock()))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"captures something \(hour: lock\)"):
        pack(partial(look_up, hour=threading.Lock()))


def test_a_recursive_function_that_captures_a_lock_is_refused() -> None:
    client = threading.Lock()

    async def again(value: int) -> int:
        with client:
            return await again(value - 1) if value else unset

    with pytest.raises(TypeError, match="cannot be sent to the workers"):
        pack(again)
    unset = 0
