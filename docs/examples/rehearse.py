from pathlib import Path
from random import Random

import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.gates import settle
from trio_asyncio_io.rehearsal import record, rehearse

workers = trio.CapacityLimiter(40)  # the service: more calls at once only wait


async def ask(prompt):
    random = Random(prompt)
    async with workers:
        await trio.sleep(random.gammavariate(3.0, 0.1))
    settle(0.002 * random.randint(40, 60), "dollars")
    return f"answer to {prompt}"


async def main():
    prompts = [f"question {number}" for number in range(20_000)]
    sample = await record(
        Random(1).sample(prompts, 200),
        ask,
        loads=(5, 150),
        timeout=10.0,
        weight=lambda prompt: 0.1,
        weight_name="dollars",
    )
    forecast = rehearse(sample, len(prompts), capacity=[10, 25, 50, 100])
    print(forecast)

    began = trio.current_time()
    async with ordered_wait(prompts, ask, **forecast.best) as results:
        async for _ in results:
            pass
    print(f"\nThe run took {trio.current_time() - began:.0f} s.")
    return forecast


if __name__ == "__main__":
    forecast = trio.run(main, clock=MockClock(autojump_threshold=0))
    Path("forecast.svg").write_text(forecast.plot())
