import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait

unwound = []


async def call(name):
    if name == "bad":
        await trio.sleep(1.0)
        raise ValueError("no such city")
    try:
        await trio.sleep({"a": 0.5, "b": 2.0, "c": 0.7}[name])
        return name.upper()
    except trio.Cancelled:
        unwound.append(name)
        raise


async def first_failure_ends_the_run(**options):
    results = None
    try:
        async with ordered_wait(
            ["a", "b", "bad", "c", "d"], call, capacity=3, timeout=5.0, **options
        ) as results:
            async for result in results:
                print(f"{trio.current_time():.1f} received {result}")
    except ValueError as error:
        print(f"{trio.current_time():.1f} {error!r}, note: {error.__notes__[0]}")
    print("cancelled, and have unwound:", sorted(unwound))
    print("in the snapshot:", [each.element for each in results.snapshot().elements])


async def others_continue(on_error):
    names = ["a", "bad", "c"]
    async with ordered_wait(names, call, timeout=5.0, on_error=on_error) as results:
        print(on_error, [result async for result in results])
        async for dead in results.dead_letters:
            print("dead letter:", dead.element, repr(dead.error), dead.attempts)


async def instead(name, error):
    return f"{name}: {error}"


async def main():
    await first_failure_ends_the_run()
    await others_continue("skip")
    await others_continue("dead_letter")
    async with ordered_wait(["bad"], call, timeout=5.0, on_error=instead) as results:
        print("a handler:", [result async for result in results])


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
