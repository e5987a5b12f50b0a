"""The public functions, without a Spark session."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import trio

from tests.udfs.http_columns.working import responding
from udfs.http_columns import http_get, http_request, register_http


def test_public_names_have_the_address_of_the_public_module() -> None:
    assert {each.__module__ for each in (http_get, http_request, register_http)} == {"udfs.http_columns"}


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: http_get("https://host/"), ValueError, r"the name of a column, .* write F\.lit\(url\)"),
        (lambda: http_request("GET", "https://host/"), ValueError, r"write F\.lit\(url\)"),
        (lambda: http_request("method", "url"), ValueError, r"method must be one of .*, or a column"),
        (lambda: http_get("url", {"a": 1}), TypeError, "headers must map names to values, both of them strings"),
        (lambda: register_http(None, headers="secret"), TypeError, "headers must be a mapping .* got a str$"),
        (lambda: register_http(None, prefix="my "), ValueError, "prefix must be the beginning .* got 'my '"),
    ],
)
def test_a_likely_mistake_is_refused_with_advice(use: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        use()


def test_an_error_has_its_traceback_as_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_SIMPLIFIED_TRACEBACK", "1")
    for name in ("SPARK_HIDE_TRACEBACK", "SPARK_TRACEBACK_WITH_LOCALS"):
        monkeypatch.setenv(name, "")
    registered: dict[str, Any] = {}
    session: Any = SimpleNamespace(udf=SimpleNamespace(register=registered.__setitem__))
    register_http(session)
    with pytest.raises(TypeError, match="url of http_get must be a string, and is int64: cast it") as caught:
        list(registered["http_get"].func(iter([pa.array([1])])))
    [note] = caught.value.__notes__
    assert note.endswith(f"TypeError: {caught.value}")


async def test_a_registered_function_runs_without_a_session() -> None:
    """Workers and users' own tests both do this."""
    registered: dict[str, Any] = {}
    session: Any = SimpleNamespace(udf=SimpleNamespace(register=registered.__setitem__))
    register_http(session, retries=0)

    def rows(url: str) -> list[Any]:
        return [row for array in registered["http_get"].func(iter([pa.array([url])])) for row in array.to_pylist()]

    async with responding((200, {}, b"hello")) as server:
        [row] = await trio.to_thread.run_sync(rows, server.url)
    assert (row["status"], row["body"], row["error"]) == (200, "hello", None)
