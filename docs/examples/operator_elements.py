import trio

from trio_asyncio_io import StreamRecord, Watermark, ordered_wait


async def echo_after(seconds):
    await trio.sleep(seconds)
    return seconds


async def main():
    source = [0.3, StreamRecord(0.2, timestamp=17), Watermark(17)]
    async with ordered_wait(source, echo_after, timeout=5.0) as results:
        async for result in results:
            print(result)


if __name__ == "__main__":
    trio.run(main)
