import trio

from trio_asyncio_io import ExponentialBackoff, ordered_wait, transient

MODELS = {"N14228": "737-824", "N24211": "737-824", "N619AA": "757-223"}


async def request(tailnums):  # call your service here: one request for all
    await trio.sleep(0.1)
    known = sorted(tailnum for tailnum in tailnums if tailnum in MODELS)
    return [{"tailnum": tailnum, "model": MODELS[tailnum]} for tailnum in known]


async def fetch_many(tailnums):
    # The service answers in any order and omits unknown keys
    found = {each["tailnum"]: each["model"] for each in await request(tailnums)}
    return [found.get(tailnum) for tailnum in tailnums]


async def main():
    retry = ExponentialBackoff(3, initial=0.1, maximum=1.0, retry_on=transient)
    tailnums = ["N619AA", "N14228", "unknown", "N24211"]
    async with ordered_wait(
        tailnums, fetch_many, group=3, capacity=10, timeout=5.0, retry=retry
    ) as results:
        print([result async for result in results])
    print(results.statistics().groups, "calls")


if __name__ == "__main__":
    trio.run(main)
