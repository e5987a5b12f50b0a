from dataclasses import dataclass

from trio_asyncio_io import RetryStrategy


@dataclass(frozen=True)
class Fibonacci(RetryStrategy):
    unit: float = 0.1

    def backoff(self, attempt, random):
        before, now = 0, 1
        for _ in range(attempt - 1):
            before, now = now, before + now
        return self.unit * now


def main():
    strategy = Fibonacci(max_retries=5)
    print([round(strategy.backoff(attempt, random=0.5), 1) for attempt in range(1, 6)])


if __name__ == "__main__":
    main()
