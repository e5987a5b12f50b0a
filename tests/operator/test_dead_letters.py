"""Dead letters: each failed element once, in the output order, and in the snapshot until it is received."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io import (
    DeadLetter,
    ElementTimeoutError,
    FixedDelay,
    Snapshot,
    SnapshotElement,
    StreamRecord,
    ordered_wait,
)
from trio_asyncio_io.testing import Scripted, Step

BAD = Step(1.0, error=OSError)


async def outputs_and_dead_letters(operator: Any) -> tuple[list[Any], list[DeadLetter]]:
    """Receive outputs and dead letters concurrently."""
    dead_letters: list[DeadLetter] = []

    async def read(results: Any) -> None:
        dead_letters.extend([dead_letter async for dead_letter in results.dead_letters])

    async with operator as results, trio.open_nursery() as nursery:
        nursery.start_soon(read, results)
        outputs = [result async for result in results]
    return outputs, dead_letters


async def test_a_failed_element_is_sent_to_dead_letters_with_error_attempts_and_seconds(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    source = ["good", StreamRecord("bad", 7), "late"]
    function = Scripted({"bad": BAD, "late": Step(math.inf)}, default=Step(1.0))
    retry = FixedDelay(2, 0.5)
    outputs, dead_letters = await outputs_and_dead_letters(
        async_wait(source, function, timeout=10.0, retry=retry, on_error="dead_letter")
    )
    assert outputs == ["good"]
    bad, late = sorted(dead_letters, key=lambda dead_letter: dead_letter.seconds)
    assert (bad.element, type(bad.error), bad.attempts, bad.seconds) == (StreamRecord("bad", 7), OSError, 3, 4.0)
    assert (late.element, type(late.error), late.attempts, late.seconds) == ("late", ElementTimeoutError, 1, 10.0)


async def test_unreceived_dead_letters_fill_the_buffer_and_stop_the_source(autojump_clock: MockClock) -> None:
    taken: list[int] = []

    def source() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    function = Scripted(default=Step(error=OSError))
    async with ordered_wait(source(), function, timeout=1.0, capacity=2, buffer=4, on_error="dead_letter") as results:
        first = await results.dead_letters.receive()
        await wait_all_tasks_blocked()
        assert len(taken) == 1 + 4 + 1  # received, buffered, and waiting for room
        rest = [dead_letter async for dead_letter in results.dead_letters]
    assert [dead_letter.element for dead_letter in [first, *rest]] == list(range(100))


async def test_a_buffer_full_of_unreceived_dead_letters_is_logged_once(
    async_wait: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    function = Scripted(default=Step(error=OSError))
    async with async_wait(range(100), function, timeout=1.0, capacity=2, buffer=4, on_error="dead_letter") as results:
        await trio.sleep(4.9)
        assert caplog.text == ""
        await trio.sleep(10.0)
        assert results.statistics().buffered == 4
        message = "4 dead letters fill the buffer and none has been received for 5 s"
        assert caplog.text.count(message) == 1
        assert len([dead_letter async for dead_letter in results.dead_letters]) == 100
    assert len(caplog.records) == 1


async def test_a_buffer_of_dead_letters_can_be_received_at_the_end(autojump_clock: MockClock) -> None:
    function = Scripted(default=Step(error=OSError))
    async with ordered_wait(range(4), function, timeout=1.0, capacity=2, buffer=4, on_error="dead_letter") as results:
        assert [result async for result in results] == []
        assert len([dead_letter async for dead_letter in results.dead_letters]) == 4


async def test_closing_the_channel_drops_dead_letters(async_wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted(default=Step(error=OSError))
    async with async_wait(range(100), function, timeout=1.0, capacity=2, buffer=4, on_error="dead_letter") as results:
        await results.dead_letters.aclose()
        assert [result async for result in results] == []
        with pytest.raises(trio.ClosedResourceError, match="or the channel was closed"):
            await results.dead_letters.receive()
        with pytest.raises(trio.ClosedResourceError, match="or the channel was closed"):
            results.dead_letters.receive_nowait()
    assert results.statistics().dead_lettered == 100
    assert results.snapshot().elements == ()


async def test_receive_nowait_raises_would_block_or_end_of_channel(autojump_clock: MockClock) -> None:
    async with ordered_wait("x", Scripted(default=BAD), timeout=5.0, on_error="dead_letter") as results:
        with pytest.raises(trio.WouldBlock):
            results.dead_letters.receive_nowait()
        await trio.sleep(2.0)
        assert results.dead_letters.receive_nowait().element == "x"
        with pytest.raises(trio.EndOfChannel):
            results.dead_letters.receive_nowait()


async def test_a_waiting_receive_raises_closed_resource_error_when_the_block_is_left(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    seen: list[BaseException] = []

    async def read(results: Any) -> None:
        try:
            await results.dead_letters.receive()
        except trio.ClosedResourceError as error:
            seen.append(error)

    operator = async_wait("x", Scripted(default=Step(math.inf)), timeout=math.inf, on_error="dead_letter")
    async with trio.open_nursery() as nursery, operator as results:
        nursery.start_soon(read, results)
        await wait_all_tasks_blocked()
    assert len(seen) == 1


def snapshot_of_dead_letters(number: int) -> Snapshot:
    dead_letters = tuple(
        SnapshotElement(each, each, [DeadLetter(each, OSError(str(each)), 1, 1.0)]) for each in range(number)
    )
    return Snapshot(dead_letters, taken=number)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
async def test_unread_restored_dead_letters_do_not_stall_the_run(
    async_wait: Any, autojump_clock: MockClock, on_error: str
) -> None:
    options = {"timeout": 5.0, "capacity": 2, "buffer": 3, "on_error": on_error, "restore": snapshot_of_dead_letters(7)}
    async with async_wait(range(7, 20), Scripted(default=Step(1.0)), **options) as results:
        with trio.fail_after(1_000):
            assert len([result async for result in results]) == 13
        assert results.statistics().buffered == 0
    assert [each.element for each in results.snapshot().elements] == list(range(7))


async def test_restored_dead_letters_can_be_received_with_any_on_error(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    async with async_wait(["a"], Scripted(), timeout=5.0, restore=snapshot_of_dead_letters(3)) as results:
        assert [result async for result in results] == ["a"]
        assert [dead_letter.element async for dead_letter in results.dead_letters] == [0, 1, 2]
        assert results.statistics().buffered == 0
    assert len(results.snapshot()) == 0


async def test_restored_dead_letters_count_in_the_buffer_with_on_error_dead_letter(
    async_wait: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    options = {
        "timeout": 5.0,
        "capacity": 2,
        "buffer": 3,
        "on_error": "dead_letter",
        "restore": snapshot_of_dead_letters(7),
    }
    async with async_wait(["a"], Scripted(), **options) as results:
        await trio.sleep(6.0)
        assert results.statistics().buffered == 3
    assert "3 dead letters fill the buffer" in caplog.text


async def test_restored_dead_letters_that_a_task_receives_are_not_reported(
    async_wait: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"capacity": 2, "buffer": 3, "on_error": "dead_letter", "restore": snapshot_of_dead_letters(3)}
    elements: list[int] = []

    async def receive(dead_letters: Any) -> None:
        async for dead_letter in dead_letters:
            elements.append(dead_letter.element)  # noqa: PERF401 - they arrive one by one

    async with async_wait([], Scripted(), timeout=5.0, **options) as results, trio.open_nursery() as nursery:
        nursery.start_soon(receive, results.dead_letters)
        assert [result async for result in results] == []
        await trio.sleep(10.0)
    assert (elements, caplog.text) == ([0, 1, 2], "")


async def test_a_reader_of_dead_letters_is_told_that_skip_drops_them(
    async_wait: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    function = Scripted({1: Step(error=OSError), 2: Step(error=OSError)})
    async with async_wait(range(4), function, timeout=1.0, on_error="skip") as results:
        assert {result async for result in results} == {0, 3}
        assert caplog.text == ""
        assert [dead_letter async for dead_letter in results.dead_letters] == []
    [record] = caplog.records
    assert record.message == 'failed and skipped: 2. To receive them here, give on_error="dead_letter"'


async def test_dead_letters_that_are_received_after_the_last_result_are_not_reported(
    async_wait: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    function = Scripted(default=Step(error=OSError))
    async with async_wait(range(4), function, timeout=1.0, capacity=2, buffer=4, on_error="dead_letter") as results:
        assert [result async for result in results] == []
        await trio.sleep(10.0)
        assert {dead_letter.element async for dead_letter in results.dead_letters} == {0, 1, 2, 3}
    assert caplog.text == ""
