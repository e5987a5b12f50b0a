import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.gates import Budget, BudgetError, settle
from trio_asyncio_io.progress import summary

PRICE = 0.002  # dollars per token


def estimate(prompt):
    return PRICE * 100  # the request allows an answer of 100 tokens


async def ask(prompt):
    await trio.sleep(0.5)
    tokens = 10 + len(prompt)  # the response reports them
    settle(PRICE * tokens)
    return f"answer to {prompt}"


async def keep(prompt, error):
    if not isinstance(error, BudgetError):
        raise error
    return f"no answer to {prompt}"


async def main():
    budget = Budget(50.0, weight=estimate)
    prompts = [f"question {number}" for number in range(2000)]
    async with ordered_wait(
        prompts, ask, timeout=30.0, gate=budget, on_error=keep
    ) as results:
        answers = [text async for text in results if text.startswith("answer")]
    print(len(answers), "answers for", budget.spent, "dollars")
    print(summary(results.statistics(), trio.current_time()))


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
