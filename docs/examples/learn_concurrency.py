import trio
from trio.testing import MockClock


async def fetch(name, seconds):
    await trio.sleep(seconds)
    print(f"{trio.current_time():.1f} {name}")


async def nursery():
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fetch, "slow", 0.3)
        nursery.start_soon(fetch, "quick", 0.1)
    print("both tasks have ended")


async def cancel_scope():
    with trio.move_on_after(0.2) as scope:
        await fetch("never printed", 5.0)
    print("cancelled:", scope.cancelled_caught)


async def channel():
    send, receive = trio.open_memory_channel(1)  # room for one item

    async def produce():
        async with send:
            for number in range(3):
                await send.send(number)  # waits while the channel is full

    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce)
        print([number async for number in receive])


async def checkpoint():
    with trio.move_on_after(0):
        for number in range(1_000_000):
            if number % 1_000 == 0:
                await trio.lowlevel.checkpoint()  # others run; cancellation arrives
    print("stopped before the end:", number < 999_999)


async def shield():
    with trio.move_on_after(0.1):
        try:
            await trio.sleep(5.0)
        finally:
            with trio.move_on_after(1.0, shield=True):
                await fetch("closed the connection", 0.2)


if __name__ == "__main__":
    for part in (nursery, cancel_scope, channel, checkpoint, shield):
        trio.run(part, clock=MockClock(autojump_threshold=0))
