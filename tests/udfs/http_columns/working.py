"""The work of one task, without Spark: Arrow columns in, structs out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa
import trio

from tests.support import PATIENCE
from tests.udfs.http.serving import Server, scripted, serving
from udfs._spark_thread.reading import rows_of
from udfs.http_columns._arrow import HttpConversion
from udfs.http_columns._options import HttpOptions


@asynccontextmanager
async def responding(*responses: Any) -> AsyncIterator[Server]:
    """A server with scripted responses."""
    async with serving(scripted(*responses)) as server:
        yield server


def work(kind: str, headers: Any = None, **options: Any) -> HttpConversion:
    return HttpConversion(HttpOptions(headers, **{"timeout": PATIENCE, **options}).settings(), kind)


async def results_of(task: HttpConversion, *columns: Any) -> list[Any]:
    """The structs for one batch of these columns."""
    arrays = tuple(each if isinstance(each, pa.Array) else pa.array(each, pa.string()) for each in columns)

    def run() -> list[Any]:
        return [row.inputs[0] for part in task.run(iter([arrays])) for row in rows_of([part], 0)]

    return await trio.to_thread.run_sync(run)


async def get(*urls: str | None, **options: Any) -> list[Any]:
    return await results_of(work("http_get", **options), list(urls))


async def request(
    method: str | None,
    url: str,
    own: dict[str, str | None] | None = None,
    body: str | bytes | None = None,
    **options: Any,
) -> Any:
    headers = pa.array([None if own is None else list(own.items())], pa.map_(pa.string(), pa.string()))
    [result] = await results_of(work("http_request", **options), [method], [url], headers, pa.array([body]))
    return result
