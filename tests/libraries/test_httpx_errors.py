"""Dead letters with exceptions of httpx, whose constructors take arguments that are not in `args`."""

from __future__ import annotations

import pickle

import httpx
import pytest

from trio_asyncio_io import DeadLetter

REQUEST = httpx.Request("GET", "http://service/")


@pytest.mark.parametrize(
    "error",
    [
        httpx.ReadTimeout("late"),
        httpx.ConnectError("refused", request=REQUEST),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_pickled_httpx_exception_keeps_its_type_and_message(error: httpx.HTTPError) -> None:
    twin = pickle.loads(pickle.dumps(DeadLetter("a", error, attempts=1, seconds=0.0))).error
    assert (type(twin), str(twin)) == (type(error), str(error))
