"""The progress: one line that changes in a terminal, few lines in a file, and nothing between you and the results."""

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

from tests.interrupting import Lines, default_sigint
from trio_asyncio_io import AsyncWaitOperator, FixedDelay, Statistics, StreamRecord, Watermark, ordered_wait
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
    """The lines that stood in a terminal one after the other, each once."""
    found: list[str] = []
    for part in re.split(r"\r|\n", CONTROL.sub("", written(console))):
        line = part.rstrip(" ━╸╺")
        if line and line not in found[-1:]:
            found.append(line)
    return found


async def shown(console: Console, operator: Any, **options: Any) -> list[Any]:
    async with operator as results:
        with progress(results, console=console, **options) as rows:
            return [row async for row in rows]


async def test_the_results_come_through_as_they_are(wait: Any, autojump_clock: MockClock) -> None:
    elements = [StreamRecord("a", 1), Watermark(1), StreamRecord("b", 2)]
    assert await shown(log(), wait(elements, Scripted(default=Step(1.0)), timeout=5.0)) == elements


async def test_in_a_terminal_one_line_follows_the_numbers(autojump_clock: MockClock) -> None:
    console = terminal()
    function = Scripted({1: fails_first(1, OSError("busy"), then=Step(0.2))}, default=Step(0.4))
    await shown(
        console,
        ordered_wait(range(4), function, timeout=5.0, capacity=2, retry=FixedDelay(1, 0.0)),
        total=4,
        description="lookup",
    )
    assert frames(console) == [
        "lookup  0 outputs  25% of 4  0.0/s  0:00  eta 0:01  2 running  4 buffered  1 retried",
        "lookup  2 outputs  50% of 4  4.0/s  0:00  eta 0:00  2 running  2 buffered  1 retried",
        "lookup  3 outputs  75% of 4  4.0/s  0:01  eta 0:00  1 running  1 buffered  1 retried",
        "lookup: 4 outputs in 0.8 s (5.0/s), 1 retried, 0 failed, 0 timed out",
    ]


async def test_behind_a_straggler_the_line_still_moves(autojump_clock: MockClock) -> None:
    console = terminal()
    await shown(console, ordered_wait(range(3), Scripted({0: Step(0.9)}, default=Step(0.3)), timeout=5.0, capacity=2))
    assert frames(console) == [
        "0 outputs  0.0/s  0:00  2 running  3 buffered",
        "0 outputs  0.0/s  0:01  1 running  3 buffered",
        "3 outputs in 0.9 s (3.3/s), 0 retried, 0 failed, 0 timed out",
    ]


async def test_the_line_changes_although_there_is_always_an_output_ready(autojump_clock: MockClock) -> None:
    console = terminal()
    async with ordered_wait(range(4), Scripted(), timeout=5.0) as results:
        with progress(results, console=console) as rows:
            async for _ in rows:
                await trio.sleep(0.3)
    assert frames(console)[:2] == [
        "1 output  3.3/s  0:00  0 running  3 buffered",
        "2 outputs  3.3/s  0:01  0 running  2 buffered",
    ]


async def test_the_line_changes_at_most_four_times_a_second(wait: Any, autojump_clock: MockClock) -> None:
    console = terminal()
    await shown(console, wait(range(1000), Scripted(default=Step(0.01)), timeout=5.0, capacity=1))
    changes = written(console).count(" running")
    assert 38 <= changes <= 41  # in 10 seconds; the last one is drawn once more when it is taken away


async def test_beside_the_line_there_is_a_bar_where_there_is_room(autojump_clock: MockClock) -> None:
    wide, narrow, endless = terminal(), terminal(72), terminal()
    for console, total in ((wide, 2), (narrow, 2), (endless, None)):
        await shown(console, ordered_wait("ab", Scripted(default=Step(0.3)), timeout=5.0, capacity=1), total=total)
    assert ["━" in written(console) for console in (wide, narrow, endless)] == [True, False, False]


async def test_in_a_narrow_terminal_nothing_is_lost(autojump_clock: MockClock) -> None:
    console = terminal(40)
    await shown(console, ordered_wait("ab", Scripted(default=Step(0.3)), timeout=5.0, capacity=1), total=2)
    line = "0 outputs  0% of 2  0.0/s  0:00  eta -:--  1 running  2 buffered"
    assert " ".join(line.split()) in " ".join(CONTROL.sub("", written(console)).split())


async def test_the_terminal_is_as_it_was(wait: Any, autojump_clock: MockClock) -> None:
    console = terminal()
    streams = sys.stdout, sys.stderr
    await shown(console, wait("ab", Scripted(default=Step(0.3)), timeout=5.0))
    assert (sys.stdout, sys.stderr) == streams
    assert written(console).startswith(HIDE)
    assert written(console).count(HIDE) == written(console).count(SHOW) == 1
    # The line has been erased, and the summary stands in its place
    assert written(console).rpartition(ERASE)[2].count("\n") == 1


async def test_the_terminal_is_as_it_was_after_leaving_early(wait: Any, autojump_clock: MockClock) -> None:
    console = terminal()
    async with wait("abc", Scripted(default=Step(0.3)), timeout=5.0, capacity=1) as results:
        with progress(results, console=console) as rows:
            async for _ in rows:
                break
    assert written(console).count(SHOW) == 1
    assert frames(console)[-1] == "1 output in 0.3 s (3.3/s), 0 retried, 0 failed, 0 timed out"


@pytest.mark.parametrize("console_of", [terminal, log])
async def test_an_elements_exception_comes_out_as_itself(wait: Any, autojump_clock: MockClock, console_of: Any) -> None:
    console = console_of()
    error = ZeroDivisionError("no")
    with pytest.raises(ZeroDivisionError) as caught:
        await shown(console, wait("ab", Scripted({"b": Step(1.0, error=error)}, default=Step(0.5)), timeout=5.0))
    assert caught.value is error
    assert frames(console)[-1] == "1 output in 1.0 s (1.0/s), 0 retried, 1 failed, 0 timed out"
    assert written(console).count(SHOW) == (console_of is terminal)


@pytest.mark.parametrize("console_of", [terminal, log])
async def test_an_exception_of_the_body_comes_out_as_itself(
    wait: Any, autojump_clock: MockClock, console_of: Any
) -> None:
    console = console_of()

    async def body() -> None:
        async with wait("ab", Scripted(default=Step(0.5)), timeout=5.0) as results:
            with progress(results, console=console) as rows:
                async for _ in rows:
                    raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await body()
    assert written(console).count(SHOW) == (console_of is terminal)


@pytest.mark.parametrize("seconds", [0.1, 1.0])
async def test_cancellation_passes_through(wait: Any, autojump_clock: MockClock, seconds: float) -> None:
    console = terminal()
    with trio.move_on_after(seconds) as scope:
        await shown(console, wait("ab", Scripted(default=Step(math.inf)), timeout=math.inf))
    assert scope.cancelled_caught
    assert trio.current_time() == seconds
    assert frames(console)[-1] == f"0 outputs in {seconds} s (0.0/s), 0 retried, 0 failed, 0 timed out"


async def test_cancellation_is_seen_although_there_is_an_output_ready(wait: Any, autojump_clock: MockClock) -> None:
    async with wait("ab", Scripted(), timeout=5.0) as results:
        await trio.sleep(1.0)
        with progress(results, console=log()) as rows, trio.CancelScope() as scope:
            scope.cancel()
            await anext(rows)
        assert scope.cancelled_caught
        assert results.statistics().buffered == 2


async def test_a_new_line_never_costs_an_output(wait: Any, autojump_clock: MockClock) -> None:
    console = terminal()
    rows = await shown(console, wait(range(400), Scripted(default=Step(0.25)), timeout=5.0, capacity=3))
    assert sorted(rows) == list(range(400))


async def test_a_log_has_a_line_every_thirty_seconds_and_one_at_the_end(autojump_clock: MockClock) -> None:
    console = log()
    function = Scripted({1: Step(error=OSError), 2: Step(math.inf)}, default=Step(7.0))
    await shown(
        console,
        ordered_wait(range(12), function, timeout=10.0, capacity=1, on_error="skip"),
        total=12,
        description="[night] run",
    )
    assert written(console) == (
        "[night] run  2 outputs  33% of 12  0.1/s  0:30  eta 1:00  1 running  8 buffered  1 failed  1 timed out\n"
        "[night] run  7 outputs  75% of 12  0.1/s  1:00  eta 0:20  1 running  3 buffered  1 failed  1 timed out\n"
        "[night] run: 10 outputs in 80.0 s (0.1/s), 0 retried, 1 failed, 1 timed out\n"
    )


async def test_a_log_stays_one_although_colours_are_forced(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    await shown(None, ordered_wait("ab", Scripted(default=Step(2.0)), timeout=5.0))  # type: ignore[arg-type]
    assert capsys.readouterr() == ("", "2 outputs in 2.0 s (1.0/s), 0 retried, 0 failed, 0 timed out\n")


async def test_what_is_printed_to_a_file_stays_there(
    autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    console = terminal()
    async with ordered_wait("ab", Scripted(default=Step(0.3)), timeout=5.0) as results:
        with progress(results, console=console) as rows:
            async for row in rows:
                sys.stdout.write(f"{row}\n")
    assert capsys.readouterr().out == "a\nb\n"
    assert "a\n" not in written(console)


async def test_it_works_for_an_operator_that_is_pushed(autojump_clock: MockClock) -> None:
    console = log()
    async with AsyncWaitOperator(Scripted(default=Step(2.0)), timeout=5.0) as operator:
        await operator.put("a")
        operator.end_input()
        with progress(operator.output, console=console) as rows:
            assert [row async for row in rows] == ["a"]
    assert written(console) == "1 output in 2.0 s (0.5/s), 0 retried, 0 failed, 0 timed out\n"


async def test_dead_letters_are_left_to_whoever_reads_them(wait: Any, autojump_clock: MockClock) -> None:
    console = log()
    function = Scripted({"a": Step(1.0, error=OSError)}, default=Step(2.0))
    async with wait("ab", function, timeout=5.0, on_error="dead_letter") as results:
        with progress(results, total=2, console=console) as rows:
            assert [row async for row in rows] == ["b"]
        assert [letter.element async for letter in results.dead_letters] == ["a"]
    assert written(console) == "1 output in 2.0 s (0.5/s), 0 retried, 1 failed, 0 timed out\n"


async def test_a_source_without_elements_is_no_division_by_zero(autojump_clock: MockClock) -> None:
    console = log()

    async def nothing_for_a_minute() -> Any:
        await trio.sleep(31.0)
        for never in ():
            yield never

    assert await shown(console, ordered_wait(nothing_for_a_minute(), Scripted(), timeout=5.0), total=0) == []
    assert written(console).splitlines()[0] == ("0 outputs  100% of 0  0.0/s  0:30  eta -:--  0 running  0 buffered")


async def test_it_must_be_entered(autojump_clock: MockClock) -> None:
    async with ordered_wait("ab", Scripted(), timeout=5.0) as results:
        rows = progress(results, console=log())
        with pytest.raises(RuntimeError, match="enter it first"):
            await anext(rows)


def test_a_negative_total_is_refused() -> None:
    with pytest.raises(ValueError, match="total must be None or at least 0, got -1"):
        progress(None, total=-1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("statistics", "seconds", "line"),
    [
        (Statistics(), 0.0, "0 outputs in 0.0 s, 0 retried, 0 failed, 0 timed out"),
        (Statistics(emitted=1), 2.0, "1 output in 2.0 s (0.5/s), 0 retried, 0 failed, 0 timed out"),
        (
            Statistics(emitted=12345, retried=1700, failed=2, timed_out=3),
            12.3,
            "12,345 outputs in 12.3 s (1,004/s), 1,700 retried, 2 failed, 3 timed out",
        ),
    ],
)
def test_the_summary_is_a_sentence(statistics: Statistics, seconds: float, line: str) -> None:
    assert summary(statistics, seconds) == line


async def test_without_a_standard_error_the_results_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a daemon, or under pythonw."""
    monkeypatch.setattr(sys, "stderr", None)
    async with ordered_wait(range(3), Scripted(), timeout=5.0) as results:
        with progress(results) as rows:
            assert [row async for row in rows] == [0, 1, 2]


async def test_a_total_that_was_too_small_is_no_longer_shown(autojump_clock: MockClock) -> None:
    console = terminal()
    await shown(console, ordered_wait(range(5), Scripted(default=Step(20.0)), capacity=1, timeout=50.0), total=2)
    lines = frames(console)
    assert any("50% of 2" in line for line in lines)
    assert any("100% of 2" in line for line in lines)
    assert not any("% of 2" in line for line in lines if line.startswith(("3 out", "4 out")))


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_no_interrupt_loses_an_output_that_the_operator_counts_as_received() -> None:
    def run(interrupt_at: int) -> tuple[list[int], list[Any], Lines]:
        operator = AsyncWaitOperator(Scripted[int](), source=iter(range(6)), timeout=5.0, capacity=2)
        out: list[int] = []
        lines = Lines(interrupt_at)

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
