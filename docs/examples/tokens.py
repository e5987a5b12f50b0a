import httpx
import trio
from trio.testing import MockClock

from trio_asyncio_io import AsyncFunction, unordered_wait
from trio_asyncio_io.policies import cached, single_flight
from udfs.http import client


class Rows(AsyncFunction):
    def __init__(self, transport=None):
        self.transport = transport  # None: the network; a test passes a mock

    async def open(self):
        self.http = client(base_url="https://service.example", transport=self.transport)
        self.token = cached(single_flight(self.fetch_token), ttl=25.0)  # it lives 30 s
        self.generation = 0

    async def fetch_token(self, generation):
        response = await self.http.post("/token", data={"client_secret": "..."})
        return response.raise_for_status().json()["access_token"]

    async def invoke(self, row):
        for _ in range(2):  # after a 401, once again with a new token
            generation = self.generation
            headers = {"authorization": f"Bearer {await self.token(generation)}"}
            response = await self.http.get(f"/rows/{row}", headers=headers)
            if response.status_code != 401:
                break
            self.generation = generation + 1
        return response.raise_for_status().text

    async def close(self):
        await self.http.aclose()


class Service:
    """A stand-in for the service. It revokes the second token early."""

    tokens = calls = 0

    async def answer(self, request):
        await trio.sleep(1.0)
        if request.url.path == "/token":
            self.tokens += 1
            return httpx.Response(200, json={"access_token": f"t{self.tokens}"})
        self.calls += 1
        is_revoked = trio.current_time() > 40.0
        if is_revoked and request.headers["authorization"] == "Bearer t2":
            return httpx.Response(401)
        return httpx.Response(200, text="found")


async def main():
    service = Service()
    rows = Rows(httpx.MockTransport(service.answer))
    async with unordered_wait(range(500), rows, capacity=10, timeout=9.0) as results:
        found = [result async for result in results]
    print(len(found), "rows,", service.calls, "calls,", service.tokens, "tokens")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
