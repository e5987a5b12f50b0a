"""Which responses are cacheable."""

from __future__ import annotations

import pytest

from tests.udfs.http_columns.working import get, responding
from udfs.http_columns._outcome import HttpResponse


@pytest.mark.parametrize(
    ("response", "is_cacheable"),
    [
        *((HttpResponse(status, {}, ""), True) for status in (200, 204, 301, 404)),
        *((HttpResponse(status, {}, ""), False) for status in (400, 403, 429, 501)),
        (HttpResponse(200, {}, "x" * 65_536), True),
        (HttpResponse(200, {}, "x" * 65_537), False),
        (HttpResponse(200, {"x": "x" * 65_535}, ""), True),
        (HttpResponse(200, {"x": "x" * 65_536}, ""), False),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_lasting_status_and_a_small_size_are_cacheable(response: HttpResponse, is_cacheable: bool) -> None:
    assert response.is_cacheable is is_cacheable


@pytest.mark.parametrize(("status", "requests"), [(404, 1), (403, 2)])
async def test_only_a_cacheable_response_is_cached(status: int, requests: int) -> None:
    async with responding(status) as server:
        first, second = await get(server.url, cache=60.0), await get(server.url, cache=60.0)
    assert first == second
    assert len(server.requests) == requests
