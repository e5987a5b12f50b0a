"""The function: a callable, or an object with `open`, `invoke` and `close`."""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest.mock import AsyncMock

import pytest

from tests.support import stable_id
from trio_asyncio_io import AsyncFunction, NotAsyncError
from trio_asyncio_io._operator.function import as_function, awaitable_from, is_async


async def upper(value: str) -> str:
    return value.upper()


class Upper(AsyncFunction[str, str]):
    async def invoke(self, value: str) -> str:
        return value.upper()


class CallableUpper:
    async def __call__(self, value: str) -> str:
        return value.upper()


@pytest.mark.parametrize("function", [upper, Upper(), Upper().invoke, CallableUpper(), partial(upper)], ids=stable_id)
async def test_any_async_callable_is_a_function(function: Any) -> None:
    assert await as_function(function).invoke("a") == "A"


async def test_an_object_with_invoke_needs_no_base_class() -> None:
    class Bare:
        async def invoke(self, value: str) -> str:
            return value.upper()

    bare = Bare()
    assert as_function(bare) is bare


async def test_open_and_close_do_nothing_by_default() -> None:
    function = as_function(upper)
    await function.open()
    await function.close()
    await Upper().open()
    await Upper().close()


@pytest.mark.parametrize("function", [None, 3, "upper", [upper]])
def test_an_object_that_is_not_callable_is_refused(function: Any) -> None:
    with pytest.raises(TypeError, match="must be an async callable or an AsyncFunction, got"):
        as_function(function)


def test_a_class_is_refused_with_a_hint() -> None:
    with pytest.raises(TypeError, match="give an instance, not the class"):
        as_function(Upper)


def test_an_async_function_without_invoke_cannot_be_created() -> None:
    with pytest.raises(TypeError, match="invoke"):
        AsyncFunction()  # type: ignore[abstract]


def test_a_call_must_return_an_awaitable() -> None:
    with pytest.raises(NotAsyncError, match=r"returned 'A', which cannot be awaited"):
        awaitable_from(str.upper, "a")


@pytest.mark.parametrize("function", [upper, Upper(), CallableUpper(), partial(upper)], ids=stable_id)
def test_async_functions_are_recognized(function: Any) -> None:
    assert is_async(function)


@pytest.mark.parametrize("function", [str.upper, print, partial(print), 3], ids=stable_id)
def test_other_functions_are_not_async(function: Any) -> None:
    assert not is_async(function)


@pytest.mark.parametrize(
    "mock", [AsyncMock(return_value="A"), AsyncMock(spec=upper, return_value="A")], ids=["", "spec"]
)
async def test_a_mock_of_a_function_is_called_directly(mock: Any) -> None:
    assert await as_function(mock).invoke("a") == "A"


async def test_a_mock_of_an_async_function_is_called_through_invoke() -> None:
    mock = AsyncMock(spec=Upper)
    mock.invoke.return_value = "A"
    assert await as_function(mock).invoke("a") == "A"


async def test_a_proxy_that_is_not_callable_is_called_through_invoke() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> Any:
            return getattr(Upper(), name)

    assert await as_function(Proxy()).invoke("a") == "A"


def test_an_async_generator_function_is_refused_with_a_hint() -> None:
    async def rows(value: str) -> Any:
        yield value

    with pytest.raises(NotAsyncError, match="is an async generator, because it contains `yield`"):
        awaitable_from(rows, "a")
