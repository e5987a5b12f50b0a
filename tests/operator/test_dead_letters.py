"""Dead letters: failed elements on a channel of their own, in their turn, once, and in the snapshot until received."""

from __future__ import annotations

import math
import pickle
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
    Watermark,
    ordered_wait,
)
from trio_asyncio_io.testing import Scripted, Step

BAD = Step(1.0, error=OSError)


async def halves(operator: Any) -> tuple[list[Any], list[DeadLetter]]:
    """The outputs and the dead letters, received side by side."""
    letters: list[DeadLetter] = []

    async def read(results: Any) -> None:
        letters.extend([letter async for letter in results.dead_letters])

    async with operator as results, trio.open_nursery() as nursery:
        nursery.start_soon(read, results)
        outputs = [result async for result in results]
    return outputs, letters


async def test_what_failed_comes_out_on_the_other_channel_with_all_that_is_known_of_it(
    wait: Any, autojump_clock: MockClock
) -> None:
    source = ["good", StreamRecord("bad", 7), "late"]
    function = Scripted({"bad": BAD, "late": Step(math.inf)}, default=Step(1.0))
    retry = FixedDelay(2, 0.5)
    outputs, letters = await halves(wait(source, function, timeout=10.0, retry=retry, on_error="dead_letter"))
    assert outputs == ["good"]
    bad, late = sorted(letters, key=lambda letter: letter.seconds)
    assert (bad.element, type(bad.error), bad.attempts, bad.seconds) == (StreamRecord("bad", 7), OSError, 3, 4.0)
    assert (late.element, type(late.error), late.attempts, late.seconds) == ("late", ElementTimeoutError, 1, 10.0)


async def test_its_statistics_say_both_why_and_what_became_of_it(wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted({"b": BAD, "c": Step(math.inf)})
    async with wait("abc", function, timeout=2.0, on_error="dead_letter") as results:
        assert [result async for result in results] == ["a"]
        assert results.statistics().buffered == 2  # held until they are received
        assert len([letter async for letter in results.dead_letters]) == 2
    statistics = results.statistics()
    assert (statistics.failed, statistics.timed_out, statistics.dead_lettered, statistics.skipped) == (1, 1, 2, 0)
    assert (statistics.emitted, statistics.buffered) == (1, 0)


async def test_ordered_letters_come_in_the_order_of_the_source(autojump_clock: MockClock) -> None:
    function = Scripted({number: Step(9.0 - number, error=OSError) for number in range(9)})
    _, letters = await halves(ordered_wait(range(9), function, timeout=60.0, on_error="dead_letter"))
    assert [letter.element for letter in letters] == list(range(9))


async def test_a_letter_does_not_cross_a_watermark(wait: Any, autojump_clock: MockClock) -> None:
    """The letter behind the wall fails at once, and waits for the slow record before it."""
    function = Scripted({"slow": Step(5.0), "bad": Step(error=OSError)})
    async with wait(["slow", Watermark(1), "bad"], function, timeout=60.0, on_error="dead_letter") as results:
        await results.dead_letters.receive()
        assert trio.current_time() == 5.0


async def test_it_is_in_the_snapshot_until_it_is_received_and_comes_out_of_the_restored_run(
    wait: Any, autojump_clock: MockClock
) -> None:
    function = Scripted({"x": Step(error=OSError("no")), "y": Step(error=OSError("no"))}, default=Step(1.0))
    async with wait("xay", function, timeout=60.0, on_error="dead_letter") as results:
        assert [await results.receive()] == ["a"]
        received = [await results.dead_letters.receive()]
        saved = pickle.loads(pickle.dumps(results.snapshot()))
    calls: list[str] = []

    async def count(value: str) -> str:
        calls.append(value)
        return value

    outputs, letters = await halves(wait("b", count, timeout=60.0, on_error="dead_letter", restore=saved))
    assert sorted(letter.element for letter in [*received, *letters]) == ["x", "y"]
    assert str(letters[0].error) == "no"
    assert (outputs, calls) == (["b"], ["b"])  # neither the letter nor what was received is called again


async def test_a_restored_letter_comes_out_whatever_the_policy_is_now(autojump_clock: MockClock) -> None:
    async with ordered_wait("x", Scripted(default=BAD), timeout=60.0, on_error="dead_letter") as results:
        await trio.sleep(5.0)
        saved = results.snapshot()
    outputs, letters = await halves(ordered_wait([], Scripted(), timeout=60.0, restore=saved))
    assert (outputs, [letter.element for letter in letters]) == ([], ["x"])


async def test_unread_letters_count_in_the_buffer_and_stop_the_source(autojump_clock: MockClock) -> None:
    taken: list[int] = []

    def source() -> Iterator[int]:
        for number in range(100):
            taken.append(number)
            yield number

    function = Scripted(default=Step(error=OSError))
    async with ordered_wait(source(), function, timeout=1.0, capacity=2, buffer=4, on_error="dead_letter") as results:
        first = await results.dead_letters.receive()
        await wait_all_tasks_blocked()
        assert len(taken) == 1 + 4 + 1  # received, held, and in the feeder's hand
        rest = [letter async for letter in results.dead_letters]
    assert [letter.element for letter in [first, *rest]] == list(range(100))


async def test_if_nobody_reads_them_the_log_says_so_once(
    wait: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    function = Scripted(default=Step(error=OSError))
    async with wait(range(100), function, timeout=1.0, capacity=2, buffer=4, on_error="dead_letter") as results:
        await trio.sleep(10.0)
        assert results.statistics().buffered == 4
        assert caplog.text.count("4 dead letters fill the buffer and none has been received") == 1
        assert len([letter async for letter in results.dead_letters]) == 100
    assert len(caplog.records) == 1


async def test_as_many_as_the_buffer_holds_may_be_read_at_the_end(autojump_clock: MockClock) -> None:
    function = Scripted(default=Step(error=OSError))
    async with ordered_wait(range(4), function, timeout=1.0, capacity=2, buffer=4, on_error="dead_letter") as results:
        assert [result async for result in results] == []
        assert len([letter async for letter in results.dead_letters]) == 4


async def test_closing_the_channel_drops_them(wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted(default=Step(error=OSError))
    async with wait(range(100), function, timeout=1.0, capacity=2, buffer=4, on_error="dead_letter") as results:
        await results.dead_letters.aclose()
        assert [result async for result in results] == []
        with pytest.raises(trio.ClosedResourceError):
            await results.dead_letters.receive()
    assert results.statistics().dead_lettered == 100
    assert results.snapshot().elements == ()


async def test_with_another_policy_the_channel_only_ends(wait: Any, autojump_clock: MockClock) -> None:
    outputs, letters = await halves(wait("abc", Scripted({"b": BAD}), timeout=5.0, on_error="skip"))
    assert (sorted(outputs), letters) == (["a", "c"], [])


async def test_receive_nowait_tells_whether_there_is_one(autojump_clock: MockClock) -> None:
    async with ordered_wait("x", Scripted(default=BAD), timeout=5.0, on_error="dead_letter") as results:
        with pytest.raises(trio.WouldBlock):
            results.dead_letters.receive_nowait()
        await trio.sleep(2.0)
        assert results.dead_letters.receive_nowait().element == "x"
        with pytest.raises(trio.EndOfChannel):
            results.dead_letters.receive_nowait()


async def test_one_who_still_receives_when_the_block_is_left_does_not_take_it_for_the_end(
    wait: Any, autojump_clock: MockClock
) -> None:
    seen: list[BaseException] = []

    async def read(results: Any) -> None:
        try:
            await results.dead_letters.receive()
        except trio.ClosedResourceError as error:
            seen.append(error)

    operator = wait("x", Scripted(default=Step(math.inf)), timeout=math.inf, on_error="dead_letter")
    async with trio.open_nursery() as nursery, operator as results:
        nursery.start_soon(read, results)
        await wait_all_tasks_blocked()
    assert len(seen) == 1


def restored_letters(number: int) -> Snapshot:
    letters = tuple(
        SnapshotElement(each, each, [DeadLetter(each, OSError(str(each)), 1, 1.0)]) for each in range(number)
    )
    return Snapshot(letters, taken=number)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
async def test_restored_letters_do_not_stall_a_run_in_which_nobody_reads_them(
    wait: Any, autojump_clock: MockClock, on_error: str
) -> None:
    options = {"timeout": 5.0, "capacity": 2, "buffer": 3, "on_error": on_error, "restore": restored_letters(7)}
    async with wait(range(7, 20), Scripted(default=Step(1.0)), **options) as results:
        with trio.fail_after(1_000):
            assert len([result async for result in results]) == 13
        assert results.statistics().buffered == 0
    assert [each.element for each in results.snapshot().elements] == list(range(7))


async def test_restored_letters_can_be_received_in_any_run(wait: Any, autojump_clock: MockClock) -> None:
    async with wait(["a"], Scripted(), timeout=5.0, restore=restored_letters(3)) as results:
        assert [result async for result in results] == ["a"]
        assert [letter.element async for letter in results.dead_letters] == [0, 1, 2]
        assert results.statistics().buffered == 0
    assert len(results.snapshot()) == 0


async def test_restored_letters_hold_the_buffer_where_letters_are_expected(
    wait: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"timeout": 5.0, "capacity": 2, "buffer": 3, "on_error": "dead_letter", "restore": restored_letters(7)}
    async with wait(["a"], Scripted(), **options) as results:
        await wait_all_tasks_blocked()
        assert results.statistics().buffered == 3
    assert "3 dead letters fill the buffer" in caplog.text
