"""Needs the service: python -m udfs.demo.service"""

import trio

from trio_asyncio_io import ExponentialBackoff, ordered_wait, transient
from udfs.http import client


async def main():
    async with client(base_url="http://127.0.0.1:8000") as http:

        async def call(path):
            response = await http.get(path)
            return response.raise_for_status().status_code

        retry = ExponentialBackoff(4, initial=0.05, maximum=1.0, retry_on=transient)
        paths = ["/flaky/1", "/flaky/2", "/busy/1"]  # first 503, 503 and 429
        async with ordered_wait(paths, call, timeout=5.0, retry=retry) as results:
            print([result async for result in results])
            print(results.statistics().retried, "retried")

        async with ordered_wait(
            ["/planes/unknown"], call, timeout=5.0, retry=retry, on_error="skip"
        ) as results:
            print([result async for result in results])
            print(results.statistics().retried, "retried: a 404 stays a 404")


if __name__ == "__main__":
    trio.run(main)
