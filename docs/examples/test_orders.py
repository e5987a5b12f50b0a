import httpx
import pytest

from trio_asyncio_io import AsyncFunction, ordered_wait
from udfs.http import client


class Orders(AsyncFunction):
    def __init__(self, transport=None):
        self.transport = transport  # None: the network

    async def open(self):
        self.http = client(base_url="https://service.example", transport=self.transport)

    async def invoke(self, number):
        response = await self.http.get(f"/orders/{number}")
        return response.raise_for_status().text

    async def close(self):
        await self.http.aclose()


@pytest.mark.trio
async def test_an_order_that_is_missing_is_left_out():
    def answer(request):
        is_found = request.url.path == "/orders/1"
        return httpx.Response(200, text="tea") if is_found else httpx.Response(404)

    orders = Orders(httpx.MockTransport(answer))
    async with ordered_wait([1, 2], orders, timeout=5.0, on_error="skip") as results:
        assert [result async for result in results] == ["tea"]
