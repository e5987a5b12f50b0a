from functools import partial

import httpx
import trio
from trio.testing import MockClock

from trio_asyncio_io import ExponentialBackoff, ordered_wait, transient
from udfs.http import client


class RefusedError(Exception):
    status_code = 429  # so that `transient` and gates take it for a refusal


async def geocode(http, place):
    response = await http.get("/geocode", params={"place": place})
    found = response.raise_for_status().json()
    if found["status"] == "OVER_QUERY_LIMIT":  # for GraphQL: look at found["errors"]
        raise RefusedError(found["status"])
    return found["at"]


answers = iter([{"status": "OVER_QUERY_LIMIT"}, {"status": "OK", "at": 7}])


async def main():
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=next(answers)))
    async with (
        client(base_url="https://service.example", transport=transport) as http,
        ordered_wait(
            ["Oslo"],
            partial(geocode, http),
            timeout=60.0,
            retry=ExponentialBackoff(3, initial=1.0, maximum=30.0, retry_on=transient),
            capacity="auto",
        ) as results,
    ):
        print([result async for result in results])
        print(results.statistics().retried, "retried")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
