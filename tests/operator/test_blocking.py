"""Blocked-loop detection: reports functions that block the loop, and no others."""

from __future__ import annotations

import inspect
import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import trio

from tests.support import PATIENCE, wait_until
from trio_asyncio_io.adapters import in_thread
from trio_asyncio_io.blocking import SAMPLES, BlockedLoop, _CpuTime, _culprit


class Reports(logging.Handler):
    """The warnings so far. A function that acquires `came` blocks the loop until there is one."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []
        self.came = threading.Semaphore(0)

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())
        self.came.release()


class Steps:
    """Lets a function block the loop until the watch has taken exactly one sample of it.

    Each sample counts for a whole interval, however much CPU time the machine gave to the thread.
    """

    def __init__(self) -> None:
        self._frames_of = BlockedLoop.user_frames
        self._entered = threading.Semaphore(0)
        self._sampled = threading.Semaphore(0)
        self._thread = 0

    def step(self) -> None:
        self._thread = threading.get_ident()
        self._entered.release()
        assert self._sampled.acquire(timeout=PATIENCE), "there was no sample"

    def sample(self, watch: BlockedLoop) -> list[FrameType]:
        is_stepping = watch._loop == self._thread
        if is_stepping:
            assert self._entered.acquire(timeout=PATIENCE), "no function has made a step"
        frames = self._frames_of(watch, sys._current_frames().get(watch._loop))
        if is_stepping:
            self._sampled.release()
        return frames

    def end(self) -> None:
        """Release a watch that came too late for the last step."""
        self._thread = 0
        self._entered.release()


@pytest.fixture
def reports() -> Iterator[Reports]:
    handler = Reports()
    logger = logging.getLogger("trio_asyncio_io")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Iterator[Steps]:
    made = Steps()

    def sample(watch: BlockedLoop, innermost: FrameType | None) -> list[FrameType]:
        return made.sample(watch)

    monkeypatch.setattr(BlockedLoop, "user_frames", sample)
    monkeypatch.setattr(_CpuTime, "seconds", lambda _, interval: interval)
    yield made
    made.end()


def run_watched(main: Callable[[BlockedLoop], Awaitable[None]], watch: BlockedLoop | None = None) -> None:
    """Run a loop of its own under a watch, in a thread, so that a loop that hangs fails the test."""
    watch = watch or BlockedLoop()
    errors: list[BaseException] = []

    async def collect() -> None:
        try:
            await main(watch)
        except BaseException as error:  # noqa: BLE001 - it is raised below
            errors.append(error)

    def run() -> None:  # a user's frame on the stack that is in every sample
        trio.run(collect, instruments=[watch])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    if errors:
        raise errors[0]


def line_of(function: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if text in line)


def test_a_function_that_blocks_the_loop_is_reported_with_its_line(reports: Reports) -> None:
    async def slow_lookup(_: BlockedLoop) -> None:
        assert reports.came.acquire(timeout=PATIENCE), "there was no warning"

    run_watched(slow_lookup)
    [text] = reports.texts
    line = line_of(slow_lookup, "came.acquire")
    assert text.startswith(f"slow_lookup ({__file__}, line {line}) has blocked the Trio loop for more than 0.1 s")
    assert text.endswith("trio_asyncio_io.adapters.in_thread")


class Lookup:
    """A function whose method calls another that blocks."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports

    async def invoke(self, _: BlockedLoop) -> None:
        self.find()

    def find(self) -> None:
        assert self._reports.came.acquire(timeout=PATIENCE), "there was no warning"


def test_the_innermost_function_that_blocks_is_the_one_reported(reports: Reports) -> None:
    run_watched(Lookup(reports).invoke)
    [text] = reports.texts
    assert text.startswith(f"Lookup.find ({__file__}, line {line_of(Lookup.find, 'came.acquire')})")


def test_a_function_that_calls_many_short_ones_is_reported_itself(reports: Reports, steps: Steps) -> None:
    async def compute(_: BlockedLoop) -> None:
        for _ in range(3 * SAMPLES):
            steps.step()

    run_watched(compute)
    [text] = reports.texts
    assert text.startswith(f"compute ({__file__}, line {line_of(compute, 'steps.step')})")


def test_a_function_is_reported_once(reports: Reports, steps: Steps) -> None:
    async def compute(_: BlockedLoop) -> None:
        for _ in range(2):
            for _ in range(3 * SAMPLES):
                steps.step()
            await trio.lowlevel.checkpoint()

    run_watched(compute)
    assert len(reports.texts) == 1


def test_many_short_functions_in_one_pass_are_not_reported(reports: Reports, steps: Steps) -> None:
    passes = set()

    async def main(watch: BlockedLoop) -> None:
        async def short() -> None:
            steps.step()
            passes.add(watch._pass)

        async with trio.open_nursery() as nursery:
            for _ in range(3 * SAMPLES):
                nursery.start_soon(short)

    run_watched(main)
    assert len(passes) == 1
    assert reports.texts == []


def test_a_function_that_awaits_between_its_steps_is_not_reported(reports: Reports, steps: Steps) -> None:
    async def main(_: BlockedLoop) -> None:
        for _ in range(3 * SAMPLES):
            steps.step()
            await trio.lowlevel.checkpoint()

    run_watched(main)
    assert reports.texts == []


def test_a_function_that_blocks_in_a_thread_is_not_reported(reports: Reports) -> None:
    async def main(watch: BlockedLoop) -> None:
        def block() -> None:
            wait_until(lambda: not watch._wakeup.is_set(), "the loop does not wait for I/O")

        await in_thread(block)()

    run_watched(main)
    assert reports.texts == []


def test_sampling_continues_after_the_loop_was_idle(reports: Reports) -> None:
    async def main(watch: BlockedLoop) -> None:
        await trio.to_thread.run_sync(lambda: wait_until(lambda: not watch._wakeup.is_set()))
        assert reports.came.acquire(timeout=PATIENCE), "there was no warning"

    run_watched(main)
    assert len(reports.texts) == 1


def test_each_loop_of_a_watch_is_sampled(reports: Reports) -> None:
    async def first(_: BlockedLoop) -> None:
        assert reports.came.acquire(timeout=PATIENCE), "there was no warning"

    async def second(_: BlockedLoop) -> None:
        assert reports.came.acquire(timeout=PATIENCE), "there was no warning"

    watch = BlockedLoop()
    run_watched(first, watch)
    run_watched(second, watch)
    assert len(reports.texts) == 2


def test_the_thread_ends_with_the_loop() -> None:
    found = []

    async def main(_: BlockedLoop) -> None:
        found.extend(set(threading.enumerate()) - before)

    before = set(threading.enumerate())
    run_watched(main)
    [thread] = [thread for thread in found if thread.name == "trio-blocked-loop"]
    assert thread.daemon
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_the_sampling_thread_does_not_wait_after_the_loop_has_ended() -> None:
    """Otherwise its thread would never end."""
    watch = BlockedLoop()
    wakeup = watch._wakeup
    watch.after_run()
    thread = threading.Thread(target=watch._park, args=(wakeup, watch._pass), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def frame_of(name: str, path: str) -> FrameType:
    """The frame of a function with this name, in this file."""
    module: dict[str, Any] = {"__name__": name, "sys": sys}
    exec(compile(f"def {name}(): return sys._getframe()", path, "exec"), module)
    frame = module[name]()
    assert isinstance(frame, FrameType)
    return frame


MINE = frame_of("mine", "/jobs/job.py")
INSTALLED = frame_of("installed", "/venv/lib/python3.11/site-packages/requests/api.py")
DEBIAN = frame_of("debian", "/usr/lib/python3/dist-packages/requests/sessions.py")


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        pytest.param([MINE, INSTALLED, DEBIAN], MINE, id="the caller of a library"),
        pytest.param([INSTALLED, MINE, DEBIAN], MINE, id="a callback of a library"),
        pytest.param([INSTALLED, DEBIAN], INSTALLED, id="the outermost where all are installed"),
    ],
)
def test_the_innermost_function_outside_libraries_is_reported(frames: list[FrameType], expected: FrameType) -> None:
    assert _culprit(frames) is expected


def test_a_generator_expression_counts_as_its_function() -> None:
    [frames] = (BlockedLoop().user_frames(sys._getframe()) for _ in range(1))
    assert frames[-1] is sys._getframe()


def test_time_without_a_cpu_does_not_count(reports: Reports, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    """The function is the same in all samples, because the machine is busy."""
    monkeypatch.setattr(_CpuTime, "seconds", lambda _, interval: 0.0)

    async def compute(_: BlockedLoop) -> None:
        for _ in range(3 * SAMPLES):
            steps.step()

    run_watched(compute)
    assert reports.texts == []


@pytest.mark.parametrize(
    ("ran", "is_ready", "expected"),
    [
        pytest.param(0.0, True, 0.0, id="ready and without a CPU"),
        pytest.param(0.006, True, 0.006, id="ready, with a CPU for some of the time"),
        pytest.param(0.5, True, 0.5, id="running for longer than the sampling thread wanted to sleep"),
        pytest.param(0.0, False, 0.02, id="waiting in a system call"),
        pytest.param(0.5, False, 0.5, id="waiting after a computation"),
    ],
)
def test_a_thread_that_is_ready_has_its_cpu_time_counted(
    ran: float, is_ready: bool, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([(7.0, 0.0), (7.0 + ran, 0.0)])
    monkeypatch.setattr("trio_asyncio_io.blocking.cpu_times", lambda _: next(times))
    monkeypatch.setattr("trio_asyncio_io.blocking.is_ready", lambda _: is_ready)
    thread = _CpuTime(threading.get_native_id())
    thread.seconds(0.02)
    assert thread.seconds(0.02) == pytest.approx(expected)


def test_a_function_that_computes_on_a_busy_machine_is_reported(
    reports: Reports, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread has a CPU for a fifth of the time."""
    monkeypatch.setattr(_CpuTime, "seconds", lambda _, interval: interval / 5)
    texts: list[list[str]] = []

    async def compute(_: BlockedLoop) -> None:
        for _ in range(10 * SAMPLES):
            steps.step()
            texts.append(reports.texts.copy())

    run_watched(compute)
    assert texts[2 * SAMPLES] == []
    assert len(reports.texts) == 1


def test_without_the_statistics_of_linux_all_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_asyncio_io.blocking.cpu_times", lambda _: None)
    assert _CpuTime(threading.get_native_id()).seconds(0.02) == 0.02


def test_the_time_limit_and_the_logger_can_be_chosen(steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    async def compute() -> None:
        for _ in range(3 * SAMPLES):
            steps.step()

    def run() -> None:
        trio.run(compute, instruments=[BlockedLoop(0.05, logger=logging.getLogger("mine"))])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE)
    [record] = caplog.records
    assert record.name == "mine"
    assert "for more than 0.05 s" in record.getMessage()


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf")])
def test_a_time_limit_out_of_range_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds must be"):
        BlockedLoop(seconds)
