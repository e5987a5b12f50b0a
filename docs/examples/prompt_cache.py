import trio
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.gates import LeaderFirst, PerKey

DOCUMENT, QUESTION = 20_000, 50  # tokens
INPUT, CACHED = 3e-6, 0.3e-6  # dollars for a token


class Provider:
    """A stand-in: once a call has returned, its document is in the cache for 300 s."""

    def __init__(self):
        self.cached_until = {}
        self.dollars = 0.0

    async def __call__(self, row):
        document, question = row
        is_cached = trio.current_time() < self.cached_until.get(document, 0)
        self.dollars += DOCUMENT * (CACHED if is_cached else INPUT) + QUESTION * INPUT
        await trio.sleep(2.0)
        self.cached_until[document] = trio.current_time() + 300
        return f"the answer to {question}"


def document_of(row):
    return row[0]


async def bill(gate):
    rows = [(f"document {d}", f"question {q}") for d in range(50) for q in range(20)]
    provider, started = Provider(), trio.current_time()
    async with unordered_wait(  # the rows are sorted by document
        rows, provider, timeout=60.0, capacity=20, gate=gate
    ) as answers:
        async for _ in answers:
            pass
    return f"{provider.dollars:5.2f} dollars, {trio.current_time() - started:.0f} s"


async def main():
    print("20 calls at once:   ", await bill(()))
    print("one of each leads:  ", await bill(PerKey(LeaderFirst(), key=document_of)))


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
