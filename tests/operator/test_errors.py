"""The exceptions that the operator itself raises."""

from __future__ import annotations

import pickle

import pytest
import trio

from trio_asyncio_io import ElementTimeoutError, NotAsyncError, SnapshotError


@pytest.mark.parametrize(
    ("error", "base"),
    [(ElementTimeoutError, trio.TooSlowError), (SnapshotError, ValueError), (NotAsyncError, TypeError)],
)
def test_each_error_has_a_standard_base_class(error: type, base: type) -> None:
    assert issubclass(error, base)


def test_a_timeout_error_has_a_message_and_a_timeout() -> None:
    error = ElementTimeoutError("no result for 'a'", 2.5)
    assert str(error) == "no result for 'a'"
    assert error.timeout == 2.5


def test_a_timeout_error_pickles_with_its_notes() -> None:
    """Spark sends it from the worker to the driver."""
    error = ElementTimeoutError("no result for 'a'", 2.5)
    error.add_note("element 0")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.timeout, copy.__notes__) == ("no result for 'a'", 2.5, ["element 0"])


def test_a_not_async_error_names_function_result_and_remedy() -> None:
    message = str(NotAsyncError.for_result("len", 3))
    assert "len returned 3" in message
    assert "async def" in message
    assert "trio_asyncio_io.adapters.in_thread(function)" in message
