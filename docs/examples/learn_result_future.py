import threading

import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.adapters import from_callback


def async_invoke(key, result_future):
    """A client that calls back from a thread of its own, as in Flink."""

    def respond():
        print("the first wins:", result_future.complete(key.upper()))
        print("the second:", result_future.complete("ignored"))

    threading.Thread(target=respond).start()


async def main():
    function = from_callback(async_invoke)
    async with ordered_wait(["oslo"], function, timeout=5.0) as results:
        print([result async for result in results])


if __name__ == "__main__":
    trio.run(main)
