import threading
import time

import trio

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.adapters import in_thread


class Client:
    """A client without async. It counts the calls that run at once."""

    def __init__(self):
        self.lock, self.running, self.most = threading.Lock(), 0, 0

    def lookup(self, number):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        time.sleep(0.05)
        with self.lock:
            self.running -= 1
        return number


async def most_at_once(client, function):
    async with unordered_wait(range(10), function, timeout=5.0) as results:
        async for _ in results:
            pass
    return client.most


async def main():
    client = Client()

    async def blocks_the_loop(number):
        return client.lookup(number)

    print("async def, at once:", await most_at_once(client, blocks_the_loop))
    threads = await most_at_once(client, in_thread(client.lookup))
    print("in_thread, at once:", "several" if threads > 1 else threads)


if __name__ == "__main__":
    trio.run(main)
