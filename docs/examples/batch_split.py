import trio

from trio_asyncio_io import ordered_wait


async def lengths(
    texts,
):  # call your service here: it refuses a request with an empty text
    await trio.sleep(0.1)
    if not all(texts):
        raise ValueError("status 400: a text is empty")
    return [len(text) for text in texts]


async def main():
    texts = ["one", "two", "three", "four", "", "six", "seven", "eight"]
    async with ordered_wait(
        texts, lengths, group=8, group_split=True, timeout=5.0, on_error="dead_letter"
    ) as results:
        print([result async for result in results])
        async for letter in results.dead_letters:
            print(repr(letter.element), letter.error)
    print(results.statistics().groups, "calls")


if __name__ == "__main__":
    trio.run(main)
