"""The page about a run: its numbers, its sections, and what it must not show."""

from __future__ import annotations

import json
import pickle
from math import inf
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import AtMost, Refusing
from tests.report.report_page import Page, text_of
from tests.report.test_job import task
from trio_asyncio_io import AsyncWaitOperator, ElementTimeoutError, FixedDelay, Snapshot, SnapshotElement, ordered_wait
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.integration import TaskTimes
from trio_asyncio_io.report import report
from trio_asyncio_io.testing import Scripted, Step


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.html"


async def run(
    path: Path, script: Any, elements: Any, *, values: bool = False, default: Step | None = None, **options: Any
) -> Page:
    options = {"timeout": 5.0, "capacity": 3, "on_error": "skip", **options}
    with report(path, values=values) as observer:
        async with ordered_wait(
            elements, Scripted(script, default=default or Step(1.0)), observer=observer, **options
        ) as results:
            async for _ in results:
                pass
    return Page(path)


async def test_it_has_the_verdict_and_the_options(path: Path, autojump_clock: MockClock) -> None:
    page = await run(path, {}, range(30))
    assert page.sections["What limited it"][0].startswith("30 calls in 10")
    options = page.sections["Options"]
    assert options[options.index("capacity") + 1] == "3"
    assert options[options.index("timeout") + 1] == "5 s"
    assert "retry" not in options


async def test_options_that_have_no_effect_are_left_out(path: Path, autojump_clock: MockClock) -> None:
    page = await run(path, {}, range(3), gate=[])
    assert not {"gate", "group", "group_wait"} & set(page.sections["Options"])


async def test_the_wait_of_a_group_has_its_unit(path: Path, autojump_clock: MockClock) -> None:
    async def echo(values: list[int]) -> list[int]:
        return values

    with report(path) as observer:
        async with ordered_wait(range(3), echo, timeout=5.0, group=10, observer=observer) as results:
            assert [result async for result in results] == [0, 1, 2]
    options = Page(path).sections["Options"]
    assert options[options.index("group_wait") + 1] == "50 ms"


async def test_failures_are_counted_by_type_with_examples(path: Path, autojump_clock: MockClock) -> None:
    script = {n: Step(error=ConnectionError(f"no <route> for {n}")) for n in range(5)} | {7: Step(inf)}
    page = await run(path, script, range(10), capacity=1)
    assert page.sections["What went wrong"] == [
        *("ConnectionError", "5 failed calls, 5 records without a result"),
        *("record 0: ", "no <route> for 0", "record 1: ", "no <route> for 1", "record 2: ", "no <route> for 2"),
        *("timeout", "1 failed call, 1 record without a result", "record 7: ", "no result within 5 s"),
    ]


async def test_a_failed_call_that_was_retried_counts(path: Path, autojump_clock: MockClock) -> None:
    script = {3: [Step(1.0, error=OSError("busy")), Step(1.0)]}
    page = await run(path, script, range(10), retry=FixedDelay(2, 0.5))
    found = page.sections["What went wrong"]
    assert found == ["OSError", "1 failed call, all records have a result", "record 3: ", "busy"]


async def test_a_retry_that_would_begin_after_the_deadline_is_no_failed_call(
    path: Path, autojump_clock: MockClock
) -> None:
    page = await run(path, {3: Step(1.0, error=OSError("busy"))}, range(10), retry=FixedDelay(2, 60.0))
    assert page.sections["What went wrong"] == [
        *("OSError", "1 failed call, all records have a result", "record 3: ", "busy"),
        *("timeout", "0 failed calls, 1 record without a result"),
        *("record 3: ", "no other attempt could begin within 5 s"),
    ]


async def test_a_refused_record_is_no_failed_call_and_has_its_message(path: Path, autojump_clock: MockClock) -> None:
    page = await run(path, {}, range(2), gate=Refusing())
    assert page.sections["What went wrong"] == [
        *("RefusedError", "0 failed calls, 2 records without a result"),
        *("record 0: ", "closed"),
    ]


async def test_examples_are_different_messages(path: Path, autojump_clock: MockClock) -> None:
    script = {n: Step(error=OSError("busy" if n < 20 else "gone")) for n in range(30)}
    page = await run(path, script, range(30), capacity=1)
    assert page.sections["What went wrong"][2:] == ["record 0: ", "busy", "record 20: ", "gone"]


async def test_types_of_failures_are_bounded(path: Path, autojump_clock: MockClock) -> None:
    script = {n: Step(error=type(f"Error{n}", (Exception,), {})()) for n in range(60)}
    page = await run(path, script, range(60))
    assert page.sections["What went wrong"][:2] == ["other types", "10 failed calls, 10 records without a result"]


async def test_the_slowest_records_come_first(path: Path, autojump_clock: MockClock) -> None:
    script = {4: Step(4.0), 11: [Step(1.0, error=OSError()), Step(1.5)]}
    page = await run(path, script, range(40), retry=FixedDelay(2, 0.5))
    found = page.sections["The slowest records"][4:]
    assert found[:8] == ["record 4", "4 s", "1", "completed", "record 11", "3 s", "2", "completed"]
    assert len(found) == 10 * 4


@pytest.mark.parametrize(
    "error", [Step(inf), Step(error=KeyError("secret")), Step(error=OSError("GET https://api/?q=secret"))]
)
async def test_values_are_shown_only_if_that_was_asked_for(error: Step, path: Path, autojump_clock: MockClock) -> None:
    script = {("secret", 4711): error}
    options: dict[str, Any] = {"retry": FixedDelay(1, 0.0, attempt_timeout=1.0), "timeout": 1.5}
    await run(path, script, script, **options)
    assert "secret" not in text_of(path)
    await run(path, script, script, values=True, **options)
    assert "secret" in text_of(path)


class Account:
    """A record that is neither a container nor a dataclass."""

    def __init__(self, token: str) -> None:
        self.token = token


class Slotted:
    """A record with slots."""

    __slots__ = ("token",)

    def __init__(self, token: str) -> None:
        self.token = token


class Broken(dict[str, str]):
    """A mapping that cannot be read."""

    def values(self) -> Any:
        raise RuntimeError("it is closed")


@pytest.mark.parametrize(
    "element",
    [
        {"secret": 1},
        Account("secret"),
        Slotted("secret"),
        [Account("secret")],
        {"a": {"b": {"c": {"d": {"e": "secret"}}}}},
        Broken(token="secret"),
    ],
    ids=["key", "attribute", "slot", "item", "deep", "broken"],
)
async def test_no_part_of_a_value_is_in_a_message(element: Any, path: Path, autojump_clock: MockClock) -> None:
    page = await run(path, {}, [element], default=Step(1.0, error=ValueError("no account for secret")))
    assert page.sections["What went wrong"][:2] == ["ValueError", "1 failed call, 1 record without a result"]
    assert "secret" not in text_of(path)


async def test_a_call_of_a_group_counts_once_among_the_calls_in_flight(path: Path, autojump_clock: MockClock) -> None:
    async def slept(values: list[int]) -> list[int]:
        await trio.sleep(1.0)
        return values

    with report(path) as observer:
        async with ordered_wait(range(25), slept, group=10, capacity=2, timeout=5.0, observer=observer) as results:
            assert len([result async for result in results]) == 25
    series = observer._whole().series
    assert (sum(series.change), max(series.running())) == (0, 2)


async def test_a_record_that_completes_costs_no_hook(path: Path, autojump_clock: MockClock) -> None:
    seen: list[float] = []
    script = {n: Step(1.0 + n % 50 / 100) for n in range(2_000)}
    with report(path) as observer:
        kept = observer.completed
        observer.completed = lambda *arguments: (seen.append(arguments[-1]), kept(*arguments))
        async with AsyncWaitOperator(Scripted(script), timeout=5.0, observer=observer, source=script) as operator:
            steps = set(vars(operator._ledger)) & {"accept", "start", "poll", "receive"}
            assert len([result async for result in operator.output]) == 2_000
    assert steps == set()
    assert len(seen) < 200
    assert [each.seconds for each in observer._whole().slowest] == pytest.approx([1.49] * 10)


async def test_each_count_is_in_the_bin_of_its_instant_also_after_a_silence(
    path: Path, autojump_clock: MockClock
) -> None:
    async def source() -> Any:
        for number in range(4):
            yield number
            await trio.sleep(20.0)

    with report(path) as observer:
        lookup = Scripted(default=Step(5.0))
        async with ordered_wait(source(), lookup, timeout=9.0, capacity=2, observer=observer) as results:
            async for _ in results:
                pass
    series = observer._whole().series
    assert series.width == 1.0
    assert [second for second, count in enumerate(series.received) for _ in range(count)] == [5, 25, 45, 65]
    assert [second for second, running in enumerate(series.running()) if running] == [
        second for start in range(0, 80, 20) for second in range(start, start + 5)
    ]


async def test_values_of_a_snapshot_are_not_shown(path: Path, autojump_clock: MockClock) -> None:
    page = await run(path, {}, [], restore=Snapshot((SnapshotElement(0, "secret"),)))
    assert "a snapshot of 1 element" in page.sections["Options"]
    assert "secret" not in text_of(path)


async def test_the_type_of_the_exception_that_ended_the_run_is_shown(path: Path, autojump_clock: MockClock) -> None:
    with pytest.raises(ElementTimeoutError):
        await run(path, {"secret": Step(inf)}, ["secret"], on_error="raise")
    assert "failed: ElementTimeoutError" in text_of(path)
    assert "secret" not in text_of(path)


HOSTILE = "</style></svg></title><script>alert(1)</script><img src=x onerror='alert(2)'>\"'&\0\u202e\ud800"


async def test_texts_of_the_data_do_not_become_markup(path: Path, autojump_clock: MockClock) -> None:
    kind = type(HOSTILE.replace("\0", "").replace("\ud800", ""), (OSError,), {})
    script = {HOSTILE: Step(error=kind(HOSTILE)), "slow": Step(2.0)}
    with report(path, title=HOSTILE, values=True) as observer:
        lookup = Scripted(script)
        async with ordered_wait(script, lookup, timeout=5.0, on_error="skip", observer=observer) as results:
            async for _ in results:
                pass
    page = Page(path)
    assert page.sources == []
    assert page.tags.isdisjoint({"script", "img"})
    assert "alert(1)" in " ".join(page.sections["What went wrong"])
    assert not {"\0", "\u202e", "\ud800"} & set(text_of(path))


async def test_it_needs_nothing_but_itself(path: Path, autojump_clock: MockClock) -> None:
    page = await run(path, {}, range(10))
    assert page.sources == []
    assert "url(" not in text_of(path)
    assert "@import" not in text_of(path)


@pytest.mark.slow
async def test_its_size_is_bounded(path: Path, autojump_clock: MockClock) -> None:
    script = {n: Step(n % 7 / 3, error=OSError(f"{n}" * 1_000) if n % 2 else None) for n in range(5_000)}
    await run(path, script, range(5_000), capacity=100)
    assert len(text_of(path)) < 150_000


async def test_it_is_written_if_the_run_fails(path: Path, autojump_clock: MockClock) -> None:
    with pytest.raises(OSError, match="down"):
        await run(path, {3: Step(error=OSError("down"))}, range(10), on_error="raise")
    assert Page(path).sections["What went wrong"][2:] == ["record 3: ", "down"]
    assert "failed: OSError" in text_of(path)


async def test_it_is_written_if_the_run_is_cancelled(path: Path, autojump_clock: MockClock) -> None:
    with trio.move_on_after(2.5):
        await run(path, {}, range(30))
    page = Page(path)
    assert page.sections["What limited it"][0].startswith("6 calls in")
    assert "cancelled" in text_of(path)


async def test_two_operators_one_after_the_other_become_one_page(path: Path, autojump_clock: MockClock) -> None:
    with report(path) as observer:
        for _ in range(2):
            lookup = Scripted(default=Step(1.0))
            async with ordered_wait(range(10), lookup, timeout=5.0, capacity=1, observer=observer) as results:
                async for _ in results:
                    pass
    page = Page(path)
    assert page.cards["outputs"] == "20"
    assert observer._whole().series.running()[-1] == 0
    assert "2 of 2 runs have this limit. The numbers are those of one of them." in page.sections["What limited it"]


async def test_two_operators_at_once_are_refused(
    path: Path, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    with report(path) as observer:
        async with (
            AsyncWaitOperator(Scripted(), timeout=5.0, observer=observer) as first,
            AsyncWaitOperator(Scripted(), timeout=5.0, observer=observer),
        ):
            await first.put(1)
            await first.output.receive()
    assert "use one report for each" in caplog.text
    assert Page(path).cards["outputs"] == "1"


@pytest.mark.parametrize("name", ["missing/run.html", "file/run.html", "folder"])
def test_a_path_that_cannot_be_written_is_refused_before_the_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="pass a path in a directory that exists"), report(tmp_path / name):
        pytest.fail("the run has started")
    assert not (tmp_path / "missing").exists()


def test_the_exception_of_the_run_comes_out_if_the_page_cannot_be_written(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        with report(path):
            path.mkdir()
            raise ValueError("the run's own")

    with pytest.raises(ValueError, match="the run's own"):
        fail()
    assert f"{path} was not written" in caplog.text


def test_values_that_are_neither_shown_nor_hidden_are_refused(path: Path) -> None:
    with pytest.raises(TypeError, match="values must be True or False, got 'no'"):
        report(path, values="no")  # type: ignore[arg-type]


def test_without_a_run_it_says_so(path: Path) -> None:
    with report(path):
        pass
    assert "No operator has run with this observer. In Spark, run the action inside the block" in text_of(path)


async def test_tasks_of_other_processes_write_parts_of_one_page(path: Path, autojump_clock: MockClock) -> None:
    with report(path, title="job") as observer:
        for number in range(3):
            of_task = pickle.loads(pickle.dumps(observer)).of_task(f"task {number}")
            async with ordered_wait(range(10), Scripted(default=Step(1.0)), timeout=5.0, observer=of_task) as results:
                async for _ in results:
                    pass
            of_task.write_part(TaskTimes())
    page = Page(path)
    assert "in 3 tasks · <span>completed</span>" in text_of(path)
    assert "3 of 3 tasks have this limit. The numbers are those of one of them." in page.sections["What limited it"]
    assert page.cards["outputs"] == "30"
    assert page.sections["The slowest records"][4].endswith("of task 2")


@pytest.mark.parametrize("processor", [0.0, 3.0])
async def test_the_time_of_the_tasks_is_divided_and_judged(
    path: Path, autojump_clock: MockClock, processor: float
) -> None:
    with report(path) as observer:
        for number in range(6):
            of_task = pickle.loads(pickle.dumps(observer)).of_task(f"task {number}")
            async with ordered_wait(
                range(40), Scripted(default=Step(0.25)), timeout=5.0, capacity=1, observer=of_task
            ) as results:
                async for _ in results:
                    pass
            times = {"tail": 2.0, "gap": 1.0 if number else 0.0, "processor": processor}
            of_task.write_part(task(11 * number, 10, first=not number, **times))
    limited = Page(path).sections["What limited it"]
    assert any(each.startswith("6 tasks in 65 s, 1 at once: ") for each in limited)
    said = " ".join(limited)
    assert ("use fewer partitions, 1 or 2 in place of 6." in said) == (not processor)
    assert ("The processors of the machines were the limit" in said) == bool(processor)
    assert ("Try capacity=2" in said) == (not processor)


async def test_the_waits_of_all_tasks_are_added_by_gate(path: Path, autojump_clock: MockClock) -> None:
    with report(path) as observer:
        for gate in (RateLimit(0.5), RateLimit(1.0), AtMost(1)):
            of_task = pickle.loads(pickle.dumps(observer)).of_task(str(gate))
            script = Scripted(default=Step(2.5))
            async with ordered_wait("abc", script, timeout=5.0, gate=gate, observer=of_task) as results:
                async for _ in results:
                    pass
            of_task.write_part(TaskTimes())
    waits = ["RateLimit", "9 s", "AtMost", "7.5 s"]
    assert Page(path).sections["Gates"] == ["Gate", "Waits of all calls", *waits]


async def test_a_part_without_its_report_is_not_written(path: Path, autojump_clock: MockClock) -> None:
    """This happens on a machine that does not share the directory."""
    of_task = report(path).of_task("task")
    with pytest.raises(FileNotFoundError):
        of_task.write_part(TaskTimes())
    assert list(path.parent.iterdir()) == []


def test_a_part_that_cannot_be_read_is_left_out(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with report(path):
        path.with_name("run.html.parts").joinpath("other.json").write_text("{}")
    assert "cannot be read" in caplog.text
    assert "No operator has run" in text_of(path)


async def test_parts_of_an_earlier_run_are_not_used(path: Path, autojump_clock: MockClock) -> None:
    parts = path.with_name("run.html.parts")
    parts.mkdir()
    (parts / "killed.json").write_text(json.dumps({}))
    page = await run(path, {}, range(10))
    assert page.sections["What limited it"][0].startswith("10 calls in")
    assert not parts.exists()


async def test_calls_in_flight_are_those_of_all_tasks(path: Path, autojump_clock: MockClock) -> None:
    async def run_task(observer: Any) -> None:
        async with ordered_wait(range(10), Scripted(default=Step(1e6)), timeout=2e6, observer=observer) as results:
            async for _ in results:
                pass
        observer.write_part(TaskTimes())

    with report(path) as observer:
        async with trio.open_nursery() as nursery:
            for number in range(2):
                nursery.start_soon(run_task, observer.of_task(f"task {number}"))
    assert Page(path).cards["calls in flight, at most"] == "20"
