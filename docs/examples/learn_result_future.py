import threading

import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.adapters import from_callback

wins = []


def async_invoke(key, result_future):
    """A client that calls back from a thread of its own, as in Flink."""

    def respond():
        wins.append(result_future.complete(key.upper()))
        wins.append(result_future.complete("ignored"))

    thread = threading.Thread(target=respond)
    thread.start()
    thread.join()  # only for the output: a real client calls back later


async def main():
    function = from_callback(async_invoke)
    async with ordered_wait(["oslo"], function, timeout=5.0) as results:
        print([result async for result in results])
    print("the first call wins:", wins)


if __name__ == "__main__":
    trio.run(main)
