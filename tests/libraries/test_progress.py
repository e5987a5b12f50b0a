"""The progress line: updated in place in a terminal, appended to a log, and harmless to the results."""

from __future__ import annotations

import gc
import io
import math
import re
import sys
from typing import Any

import pytest
import trio
from rich.console import Console
from trio.testing import MockClock

from tests.interrupting import LineCounter, default_sigint
from tests.plain_gates import AtMost
from trio_asyncio_io import (
    AsyncWaitOperator,
    FixedDelay,
    Snapshot,
    SnapshotElement,
    Statistics,
    StreamRecord,
    Watermark,
    ordered_wait,
)
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.progress import progress, summary
from trio_asyncio_io.testing import Scripted, Step, fails_first

HIDE, SHOW, ERASE = "\x1b[?25l", "\x1b[?25h", "\x1b[2K"
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def terminal(width: int = 120) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None, legacy_windows=False)


def log() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=40)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def frames(console: Console) -> list[str]:
    """The successive lines of a terminal, without repetitions."""
    found: list[str] = []
    for part in re.split(r"\r|\n", CONTROL.sub("", written(console))):
        line = part.rstrip()
        if line and line not in found[-1:]:
            found.append(line)
    return found


async def shown(console: Console, operator: Any, **options: Any) -> list[Any]:
    async with operator as results:
        with progress(results, console=console, **options) as rows:
            return [row async for row in rows]


async def test_results_pass_through_unchanged(async_wait: Any, autojump_clock: MockClock) -> None:
    elements = [StreamRecord("a", 1), Watermark(1), StreamRecord("b", 2)]
    assert await shown(log(), async_wait(elements, Scripted(default=Step(1.0)), timeout=5.0)) == elements


async def test_a_terminal_shows_one_line_with_the_current_numbers(autojump_clock: MockClock) -> None:
    console = terminal()
    function = Scripted({1: fails_first(1, OSError("busy"), then=Step(0.2))}, default=Step(0.4))
    await shown(
        console,
        ordered_wait(range(4), function, timeout=5.0, capacity=2, retry=FixedDelay(1, 0.0)),
        total=4,
        description="lookup",
    )
    assert frames(console) == [
        "lookup: 0 outputs  25% of 4  0/s  0:00:00  eta 0:00:01  2 running  4 buffered  1 retried",
        "lookup: 2 outputs  50% of 4  4/s  0:00:00  eta 0:00:00  2 running  2 buffered  1 retried",
        "lookup: 3 outputs  75% of 4  4/s  0:00:01  eta 0:00:00  1 running  1 buffered  1 retried",
        "lookup: 4 outputs in 800 ms (5/s), 1 retried, 0 failed, 0 timed out",
    ]


async def test_the_line_has_the_waits_for_gates(autojump_clock: MockClock) -> None:
    console = terminal()
    gate = [RateLimit(4.0), AtMost(1)]
    await shown(console, ordered_wait(range(3), Scripted(default=Step(0.375)), timeout=5.0, gate=gate))
    assert frames(console)[-2:] == [
        "2 outputs  2/s  0:00:01  1 running  1 buffered  gated by AtMost 1.12 s",
        "3 outputs in 1.12 s (2.67/s), 0 retried, 0 failed, 0 timed out, gated by AtMost 1.12 s",
    ]


async def test_the_line_is_updated_while_the_consumer_waits_for_a_straggler(autojump_clock: MockClock) -> None:
    console = terminal()
    await shown(console, ordered_wait(range(3), Scripted({0: Step(0.9)}, default=Step(0.3)), timeout=5.0, capacity=2))
    assert frames(console) == [
        "0 outputs  0/s  0:00:00  2 running  3 buffered",
        "0 outputs  0/s  0:00:01  1 running  3 buffered",
        "3 outputs in 900 ms (3.33/s), 0 retried, 0 failed, 0 timed out",
    ]


async def test_the_line_is_updated_while_outputs_are_always_available(autojump_clock: MockClock) -> None:
    console = terminal()
    async with ordered_wait(range(4), Scripted(), timeout=5.0) as results:
        with progress(results, console=console) as rows:
            async for _ in rows:
                await trio.sleep(0.3)
    assert frames(console)[:2] == [
        "1 output  3.33/s  0:00:00  0 running  3 buffered",
        "2 outputs  3.33/s  0:00:01  0 running  2 buffered",
    ]


async def test_the_line_is_updated_at_most_four_times_a_second(async_wait: Any, autojump_clock: MockClock) -> None:
    console = terminal()
    await shown(console, async_wait(range(1000), Scripted(default=Step(0.01)), timeout=5.0, capacity=1))
    changes = written(console).count(" running")
    assert 38 <= changes <= 41  # in 10 seconds; the last one is drawn again when it is erased


async def test_restored_and_remembered_results_count_as_finished(autojump_clock: MockClock) -> None:
    console = terminal()
    snapshot = Snapshot(tuple(SnapshotElement(number, number, [number]) for number in range(5)), taken=5)
    function = Scripted(default=Step(0.3))
    await shown(console, ordered_wait(range(5, 10), function, timeout=5.0, restore=snapshot), total=10)
    assert "50% of 10" in frames(console)[0]
    async with ordered_wait(range(5, 10), function, timeout=5.0, restore=snapshot) as results:
        assert len([result async for result in results]) == 10
    numbers = results.statistics()
    assert (numbers.known, numbers.completed, numbers.done) == (5, 5, 10)


async def test_a_narrow_terminal_shows_all_numbers(autojump_clock: MockClock) -> None:
    console = terminal(40)
    await shown(console, ordered_wait("ab", Scripted(default=Step(0.3)), timeout=5.0, capacity=1), total=2)
    line = "0 outputs  0% of 2  0/s  0:00:00  1 running  2 buffered"
    assert " ".join(line.split()) in " ".join(CONTROL.sub("", written(console)).split())


async def test_the_terminal_is_restored(async_wait: Any, autojump_clock: MockClock) -> None:
    console = terminal()
    streams = sys.stdout, sys.stderr
    await shown(console, async_wait("ab", Scripted(default=Step(0.3)), timeout=5.0))
    assert (sys.stdout, sys.stderr) == streams
    assert written(console).startswith(HIDE)
    assert written(console).count(HIDE) == written(console).count(SHOW) == 1
    # The line has been erased, and the summary replaces it
    assert written(console).rpartition(ERASE)[2].count("\n") == 1


@pytest.mark.parametrize("console_of", [terminal, log])
async def test_an_exception_of_an_element_is_raised_unchanged(
    async_wait: Any, autojump_clock: MockClock, console_of: Any
) -> None:
    console = console_of()
    error = ZeroDivisionError("no")
    with pytest.raises(ZeroDivisionError) as caught:
        await shown(console, async_wait("ab", Scripted({"b": Step(1.0, error=error)}, default=Step(0.5)), timeout=5.0))
    assert caught.value is error
    assert frames(console)[-1] == "1 output in 1 s (1/s), 0 retried, 1 failed, 0 timed out"
    assert written(console).count(SHOW) == (console_of is terminal)


@pytest.mark.parametrize(("seconds", "shown_seconds"), [(0.1, "100 ms"), (1.0, "1 s")])
async def test_cancellation_passes_through(
    async_wait: Any, autojump_clock: MockClock, seconds: float, shown_seconds: str
) -> None:
    console = terminal()
    with trio.move_on_after(seconds) as scope:
        await shown(console, async_wait("ab", Scripted(default=Step(math.inf)), timeout=math.inf))
    assert scope.cancelled_caught
    assert trio.current_time() == seconds
    assert frames(console)[-1] == f"0 outputs in {shown_seconds} (0/s), 0 retried, 0 failed, 0 timed out"


async def test_cancellation_is_delivered_while_an_output_is_available(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    async with async_wait("ab", Scripted(), timeout=5.0) as results:
        await trio.sleep(1.0)
        with progress(results, console=log()) as rows, trio.CancelScope() as scope:
            scope.cancel()
            await anext(rows)
        assert scope.cancelled_caught
        assert results.statistics().buffered == 2


async def test_a_log_has_a_line_every_thirty_seconds_and_one_at_the_end(autojump_clock: MockClock) -> None:
    console = log()
    function = Scripted({1: Step(error=OSError), 2: Step(math.inf)}, default=Step(7.0))
    await shown(
        console,
        ordered_wait(range(12), function, timeout=10.0, capacity=1, on_error="skip"),
        total=12,
        description="[night]",
    )
    assert written(console) == (
        "[night]: 2 outputs  33% of 12  0.0667/s  0:00:30  eta 0:01:00  1 running  8 buffered  1 failed  1 timed out\n"
        "[night]: 7 outputs  75% of 12  0.117/s  0:01:00  eta 0:00:20  1 running  3 buffered  1 failed  1 timed out\n"
        "[night]: 10 outputs in 80 s (0.125/s), 0 retried, 1 failed, 1 timed out\n"
    )


async def test_force_color_does_not_turn_a_log_into_a_terminal(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    await shown(None, ordered_wait("ab", Scripted(default=Step(2.0)), timeout=5.0))  # type: ignore[arg-type]
    assert capsys.readouterr() == ("", "2 outputs in 2 s (1/s), 0 retried, 0 failed, 0 timed out\n")


async def test_output_redirected_to_a_file_still_goes_there(
    autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    console = terminal()
    async with ordered_wait("ab", Scripted(default=Step(0.3)), timeout=5.0) as results:
        with progress(results, console=console) as rows:
            async for row in rows:
                sys.stdout.write(f"{row}\n")
    assert capsys.readouterr().out == "a\nb\n"
    assert "a\n" not in written(console)


async def test_the_line_of_an_empty_source_is_shown(autojump_clock: MockClock) -> None:
    console = log()

    async def nothing_for_a_minute() -> Any:
        await trio.sleep(31.0)
        for never in ():
            yield never

    assert await shown(console, ordered_wait(nothing_for_a_minute(), Scripted(), timeout=5.0), total=0) == []
    assert written(console).splitlines()[0] == ("0 outputs  100% of 0  0/s  0:00:30  0 running  0 buffered")


async def test_iterating_before_entering_is_refused(autojump_clock: MockClock) -> None:
    async with ordered_wait("ab", Scripted(), timeout=5.0) as results:
        rows = progress(results, console=log())
        with pytest.raises(RuntimeError, match="enter it first"):
            await anext(rows)


async def test_an_argument_that_does_not_fit_is_refused(autojump_clock: MockClock) -> None:
    async with ordered_wait("ab", Scripted(), timeout=5.0) as results:
        with pytest.raises(ValueError, match="total must be at least 0, got -1"):
            progress(results, total=-1)
    with pytest.raises(TypeError, match=r"progress takes the results of an operator, got \['a'\]: give it"):
        progress(["a"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("statistics", "seconds", "line"),
    [
        (Statistics(), 0.0, "0 outputs in 0 s, 0 retried, 0 failed, 0 timed out"),
        (Statistics(emitted=1), 2.0, "1 output in 2 s (0.5/s), 0 retried, 0 failed, 0 timed out"),
        (
            Statistics(emitted=12345, retried=1700, failed=2, timed_out=3),
            12.3,
            "12,345 outputs in 12.3 s (1,004/s), 1,700 retried, 2 failed, 3 timed out",
        ),
    ],
)
def test_the_summary_is_one_line(statistics: Statistics, seconds: float, line: str) -> None:
    assert summary(statistics, seconds) == line


async def test_results_pass_through_without_a_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """This is so in a daemon or under pythonw."""
    monkeypatch.setattr(sys, "stderr", None)
    async with ordered_wait(range(3), Scripted(), timeout=5.0) as results:
        with progress(results) as rows:
            assert [row async for row in rows] == [0, 1, 2]


async def test_a_total_that_is_too_small_is_ignored(autojump_clock: MockClock) -> None:
    console = terminal()
    await shown(console, ordered_wait(range(5), Scripted(default=Step(20.0)), capacity=1, timeout=50.0), total=2)
    lines = frames(console)
    assert any("50% of 2" in line for line in lines)
    assert any("100% of 2" in line for line in lines)
    assert not any("% of 2" in line for line in lines if line.startswith(("3 out", "4 out")))


@pytest.mark.variation
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_no_interrupt_loses_a_received_output() -> None:
    def run(interrupt_at: int) -> tuple[list[int], list[Any], LineCounter]:
        operator = AsyncWaitOperator(Scripted[int](), source=iter(range(6)), timeout=5.0, capacity=2)
        out: list[int] = []
        lines = LineCounter(interrupt_at)

        async def main() -> None:
            async with operator:
                with progress(operator.output, console=console) as rows, lines.traced():
                    async for row in rows:
                        out.append(row)  # noqa: PERF401 - what was received before the interrupt counts

        console = log()
        with default_sigint():
            try:
                trio.run(main)
            except KeyboardInterrupt:
                assert interrupt_at
        return out, [each.element for each in operator.snapshot().elements], lines

    _, _, lines = run(0)
    for interrupt_at in range(1, lines.count, 5):
        out, held, _ = run(interrupt_at)
        assert out + held == list(range(len(out) + len(held))), interrupt_at
    gc.collect()
