import httpx
import trio

from trio_asyncio_io import AsyncFunction, ExponentialBackoff, ordered_wait, transient
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.policies import gated
from udfs.http import client


class Orders(AsyncFunction):
    def __init__(self, transport=None):
        self.transport = transport  # None: the network

    async def open(self):
        self.http = client(base_url="https://service.example", transport=self.transport)
        self.request = gated(self.get, RateLimit(200.0))  # requests, not rows

    async def get(self, path):
        response = await self.http.get(path)
        return response.raise_for_status().json()

    async def invoke(self, name):  # 1. look up, 2. all pages, 3. 0 to n rows
        customer = await self.request(f"/customers?name={name}")
        orders, cursor = [], ""
        while cursor is not None:
            page = await self.request(f"/orders/{customer['id']}?cursor={cursor}")
            orders += page["orders"]
            cursor = page["next"]
        return [f"{name}: {order}" for order in orders]

    async def close(self):
        await self.http.aclose()


PAGES = {
    "/customers?name=Ann": {"id": 1},
    "/customers?name=Bob": {"id": 2},
    "/orders/1?cursor=": {"orders": ["tea", "cup"], "next": "p2"},
    "/orders/1?cursor=p2": {"orders": ["pot"], "next": None},
    "/orders/2?cursor=": {"orders": [], "next": None},
}


def answer(request):
    return httpx.Response(200, json=PAGES[request.url.raw_path.decode()])


async def main():
    orders = Orders(httpx.MockTransport(answer))
    retry = ExponentialBackoff(3, initial=0.1, maximum=1.0, retry_on=transient)
    async with ordered_wait(
        ["Ann", "Bob"], orders, timeout=30.0, retry=retry, flatten=True
    ) as results:
        print([result async for result in results])


if __name__ == "__main__":
    trio.run(main)
