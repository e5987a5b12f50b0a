"""The observer: each step of a record's life, at its instant, and nothing that an observer does can do harm."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, Observer, StreamRecord, Watermark
from trio_asyncio_io.testing import Scripted, Step, fails_first


class Diary(Observer):
    """Writes down every hook: its name, the instant, the record, and what else it was told."""

    def __init__(self) -> None:
        self.pages: list[tuple[Any, ...]] = []

    def __getattribute__(self, name: str) -> Any:
        if name not in vars(Observer) or name.startswith("_"):
            return super().__getattribute__(name)

        def write(sequence: int, element: Any, *more: Any) -> None:
            told = [str(each) if isinstance(each, Exception) else each for each in more]
            self.pages.append((name, trio.current_time(), sequence, element, *told))

        return write


async def diary_of(operator_of: Any, *arguments: Any, **options: Any) -> list[tuple[Any, ...]]:
    diary = Diary()
    async with operator_of(*arguments, observer=diary, **options) as results:
        async for _ in results:
            pass
    return diary.pages


async def test_a_good_element_is_accepted_started_completed_and_emitted(wait: Any, autojump_clock: MockClock) -> None:
    record = StreamRecord("a", 7)
    assert await diary_of(wait, [record, Watermark(7)], Scripted(default=Step(1.5)), timeout=5.0) == [
        ("accepted", 0.0, 0, record),
        ("started", 0.0, 0, record),
        ("completed", 1.5, 0, record, 1, 1.5),
        ("emitted", 1.5, 0, record),
    ]


async def test_each_attempt_that_fails_is_told(wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted({"a": fails_first(2, OSError("no"), then=Step(1.0))})
    assert await diary_of(wait, "a", function, timeout=9.0, retry=FixedDelay(5, 2.0)) == [
        ("accepted", 0.0, 0, "a"),
        ("started", 0.0, 0, "a"),
        ("attempt_failed", 0.0, 0, "a", 1, "no"),
        ("attempt_failed", 2.0, 0, "a", 2, "no"),
        ("completed", 5.0, 0, "a", 3, 5.0),
        ("emitted", 5.0, 0, "a"),
    ]


async def test_an_attempts_own_timeout_is_an_attempt_that_failed(wait: Any, autojump_clock: MockClock) -> None:
    function = Scripted({"a": [Step(math.inf), Step(0.0)]})
    pages = await diary_of(wait, "a", function, timeout=9.0, retry=FixedDelay(1, 0.0, attempt_timeout=1.0))
    assert [page[0] for page in pages] == ["accepted", "started", "attempt_failed", "completed", "emitted"]


async def test_a_failure_is_told_before_anything_becomes_of_it(wait: Any, autojump_clock: MockClock) -> None:
    assert await diary_of(
        wait, "a", Scripted(default=Step(1.0, error=OSError("no"))), timeout=9.0, on_error="skip"
    ) == [
        ("accepted", 0.0, 0, "a"),
        ("started", 0.0, 0, "a"),
        ("attempt_failed", 1.0, 0, "a", 1, "no"),
        ("failed", 1.0, 0, "a", 1, 1.0, "no"),
    ]


async def test_a_timeout_is_told_and_is_a_failure_if_nothing_comes_of_it(wait: Any, autojump_clock: MockClock) -> None:
    pages = await diary_of(wait, "a", Scripted(default=Step(math.inf)), timeout=3.0, on_error="skip")
    assert pages[2] == ("timed_out", 3.0, 0, "a", 1, 3.0)
    assert pages[3][:6] == ("failed", 3.0, 0, "a", 1, 3.0)


async def test_what_on_timeout_gives_is_emitted_and_nothing_has_failed(wait: Any, autojump_clock: MockClock) -> None:
    pages = await diary_of(wait, "a", Scripted(default=Step(math.inf)), timeout=3.0, on_timeout=Scripted())
    assert [page[0] for page in pages] == ["accepted", "started", "timed_out", "emitted"]


async def test_what_stops_with_the_operator_is_told(wait: Any, autojump_clock: MockClock) -> None:
    diary = Diary()
    async with wait("a", Scripted(default=Step(math.inf)), timeout=math.inf, observer=diary):
        await trio.sleep(4.0)
    assert diary.pages[2:] == [("cancelled", 4.0, 0, "a", 1, 4.0)]


async def test_a_dead_letter_is_emitted_when_it_is_received(wait: Any, autojump_clock: MockClock) -> None:
    diary = Diary()
    async with wait(
        "a", Scripted(default=Step(error=OSError)), timeout=1.0, on_error="dead_letter", observer=diary
    ) as all_:
        await trio.sleep(5.0)
        await all_.dead_letters.receive()
    assert diary.pages[-1] == ("emitted", 5.0, 0, "a")


async def test_each_output_of_a_flattened_element_is_emitted(wait: Any, autojump_clock: MockClock) -> None:
    pages = await diary_of(wait, ["xyz", ""], Scripted(), timeout=1.0, flatten=True)
    assert [page[2] for page in pages if page[0] == "emitted"] == [0, 0, 0]


async def test_a_restored_element_is_accepted_again(wait: Any, autojump_clock: MockClock) -> None:
    async with wait("ab", Scripted(default=Step(1.0)), timeout=5.0) as results:
        await trio.sleep(0.5)
        saved = results.snapshot()
    pages = await diary_of(wait, [], Scripted(), timeout=5.0, restore=saved)
    assert [page[2:] for page in pages if page[0] == "accepted"] == [(0, "a"), (1, "b")]


async def test_an_observer_that_raises_is_logged_once_and_the_operator_goes_on(
    wait: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Observer):
        def completed(self, *told: Any) -> None:
            raise ZeroDivisionError

    async with wait("abc", Scripted(), timeout=5.0, observer=Broken()) as results:
        assert sorted([result async for result in results]) == ["a", "b", "c"]
    assert caplog.text.count("nothing more is reported to it") == 1
    assert "completed of the observer" in caplog.text


class Fragile(Diary):
    """Raises in one of its hooks, each time, after it has written it down."""

    def __init__(self, hook: str) -> None:
        super().__init__()
        self.hook = hook

    def __getattribute__(self, name: str) -> Any:
        write = super().__getattribute__(name)
        if name != super().__getattribute__("hook"):
            return write

        def write_and_raise(*told: Any) -> None:
            write(*told)
            raise ZeroDivisionError

        return write_and_raise


STARTS = ["started a", "started b", "started c", "started d"]


@pytest.mark.parametrize(
    ("hook", "reported"),
    [
        ("accepted", []),
        ("started", ["started a", "failed a"]),
        ("attempt_failed", [*STARTS, "failed a", "completed b", "failed c", "timed_out d"]),
        ("failed", [*STARTS, "failed a", "completed b", "failed c", "timed_out d"]),
    ],
)
async def test_after_a_hook_has_raised_the_end_of_each_invocation_that_had_started_is_reported_once(
    wait: Any, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, hook: str, reported: list[str]
) -> None:
    """When a fails, b, c and d are running; e starts after that."""
    observer = Fragile(hook)
    function = Scripted(
        {"a": Step(1.0, error=OSError), "c": Step(3.0, error=OSError), "d": Step(math.inf)}, default=Step(2.0)
    )
    async with wait("abcde", function, capacity=4, timeout=5.0, observer=observer, on_error="skip") as results:
        assert sorted([result async for result in results]) == ["b", "e"]
    others = ("accepted", "attempt_failed")
    assert [f"{page[0]} {page[3]}" for page in observer.pages if page[0] not in others] == reported
    assert caplog.text.count("raised; nothing more is reported to it") == 1


async def test_an_observer_hears_everything_from_the_task_of_the_call(wait: Any, autojump_clock: MockClock) -> None:
    tasks: dict[str, Any] = {}

    class Where(Observer):
        def started(self, *told: Any) -> None:
            tasks["started"] = trio.lowlevel.current_task()

        def completed(self, *told: Any) -> None:
            tasks["completed"] = trio.lowlevel.current_task()

    async def function(value: str) -> str:
        tasks["called"] = trio.lowlevel.current_task()
        await trio.sleep(1.0)
        return value

    async with wait("a", function, timeout=5.0, observer=Where()) as results:
        await results.receive()
    assert tasks["started"] is tasks["called"] is tasks["completed"]


def test_what_is_no_observer_is_refused(wait: Any) -> None:
    with pytest.raises(TypeError, match="observer must be an Observer or None, got 'me'"):
        wait("a", Scripted(), timeout=1.0, observer="me")
