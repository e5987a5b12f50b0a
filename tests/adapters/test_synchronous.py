"""What the adapters of synchronous functions share: which functions they take, and how they pass arguments on."""

from __future__ import annotations

import pickle
from concurrent.futures import Future
from typing import Any

import pytest

from trio_asyncio_io.adapters import from_callback, from_future, in_thread

EACH = pytest.mark.parametrize("adapter", [in_thread, from_future, from_callback])


async def fetch(value: str) -> None: ...


@EACH
@pytest.mark.parametrize("function", [None, 3, "fetch"])
def test_a_function_that_is_not_callable_is_refused(adapter: Any, function: Any) -> None:
    with pytest.raises(TypeError, match=rf"{adapter.__name__} takes a .*callable.* got {function!r}"):
        adapter(function)


@EACH
def test_an_async_function_is_refused(adapter: Any) -> None:
    with pytest.raises(TypeError, match=rf"fetch.* is async already: {adapter.__name__} takes .*from_asyncio\("):
        adapter(fetch)


@EACH
def test_it_pickles_with_its_function_and_has_a_readable_repr(adapter: Any) -> None:
    copy = pickle.loads(pickle.dumps(adapter(len)))
    assert repr(copy) == f"{adapter.__name__}(<built-in function len>)"


def submit(*arguments: Any, **keywords: Any) -> Future[int]:
    future: Future[int] = Future()
    future.set_result(int(*arguments, **keywords))
    return future


@pytest.mark.parametrize("function", [in_thread(int), from_future(submit)], ids=["in_thread", "from_future"])
async def test_arguments_and_keywords_reach_the_function(function: Any) -> None:
    assert await function("ff", 16) == await function("ff", base=16) == 255
