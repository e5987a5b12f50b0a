"""The recorder: what a trace shows of a run on virtual time."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import Refusing
from tests.trace.trace_format import check_format, spans_of
from trio_asyncio_io import FixedDelay, StreamRecord, Watermark, ordered_wait
from trio_asyncio_io._watch.recorder import replace_file
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.testing import Scripted, Step, fails_first
from trio_asyncio_io.trace import TraceRecorder


async def recorded(source: Any, function: Any, recorder: TraceRecorder | None = None, **options: Any) -> Any:
    recorder = recorder or TraceRecorder()
    async with ordered_wait(source, function, observer=recorder, **{"timeout": 9.0, **options}) as results:
        async for _ in results:
            pass
    check_format(recorder.trace())
    return recorder.trace()


def parts_of(trace: Any, sequence: int) -> list[tuple[str, float, float]]:
    """The parts of an invocation: name, start and seconds."""
    return [
        (event["name"], event["ts"] / 1e6, event["dur"] / 1e6)
        for event in trace["traceEvents"]
        if event["ph"] == "X" and event["args"]["sequence"] == sequence
    ]


def files_of(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def waits_of(trace: Any) -> list[tuple[str, int, float, float]]:
    """The spans beside the slots: category, sequence, start and end."""
    ends: dict[tuple[str, str], list[int]] = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "e":
            ends.setdefault((event["cat"], event["id2"]["local"]), []).append(event["ts"])
    return [
        (e["cat"], e["args"]["sequence"], e["ts"] / 1e6, ends[e["cat"], e["id2"]["local"]].pop(0) / 1e6)
        for e in trace["traceEvents"]
        if e["ph"] == "b"
    ]


async def test_a_backoff_is_beside_the_slots(autojump_clock: MockClock) -> None:
    script = Scripted({"x": Step(9.0), "a": [Step(1.0, error=OSError), Step(1.0)]}, default=Step(4.0))
    recorder = TraceRecorder()
    options: Any = {"retry": FixedDelay(1, 3.0), "capacity": 2, "timeout": 60.0}
    trace = await recorded("xabc", script, recorder, **options)
    slots = [(span["tid"], span["name"], span["ts"] / 1e6, span["dur"] / 1e6) for span in spans_of(trace, "record")]
    (other,) = {slot[0] for slot in slots if slot[1] == "record 0"}
    assert [slot[1:] for slot in slots if slot[0] != other] == [
        ("record 1", 0.0, 1.0),
        ("record 2", 1.0, 4.0),
        ("record 1", 5.0, 1.0),
        ("record 3", 6.0, 4.0),
    ]
    assert [wait for wait in waits_of(trace) if wait[1] == 1 and wait[2] < 5.0] == [
        ("backoff", 1, 1.0, 4.0),
        ("wait for a slot", 1, 4.0, 5.0),
    ]
    assert [name for name, *_ in parts_of(trace, 1)] == ["record 1", "attempt 1 failed", "record 1", "attempt 2"]


async def test_stays_that_begin_at_one_instant_keep_their_order_in_a_slot(autojump_clock: MockClock) -> None:
    script = Scripted({"b": [Step(0.0, error=OSError), Step(0.0)]}, default=Step(1.0))
    options: Any = {"retry": FixedDelay(1, 1.0), "capacity": 2}
    trace = await recorded("abc", script, **options)
    check_format(trace)
    stays = [(span["name"], span["tid"], span["ts"] / 1e6, span["dur"] / 1e6) for span in spans_of(trace, "record")]
    assert stays == [
        ("record 1", 1, 0.0, 0.0),
        ("record 0", 1, 0.0, 1.0),
        ("record 2", 2, 0.0, 1.0),
        ("record 1", 1, 1.0, 0.0),
    ]


async def test_each_slot_has_a_track_with_its_invocations(autojump_clock: MockClock) -> None:
    trace = await recorded("abc", Scripted({"a": Step(1.0)}, default=Step(3.0)), capacity=2)
    tracks = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"]
    assert tracks == ["waiting and watermarks", "slot 1", "slot 2"]
    invocations = [(span["name"], span["tid"], span["ts"], span["dur"]) for span in spans_of(trace, "record")]
    assert invocations == [
        ("record 0", 1, 0, 1_000_000),
        ("record 1", 2, 0, 3_000_000),
        ("record 2", 1, 1_000_000, 3_000_000),
    ]


async def test_each_attempt_is_inside_a_stay_of_its_record_in_a_slot(autojump_clock: MockClock) -> None:
    function = Scripted({"a": [Step(1.0, error=OSError("secret")), Step(2.0)]})
    trace = await recorded("a", function, retry=FixedDelay(3, 0.5))
    assert parts_of(trace, 0) == [
        ("record 0", 0.0, 1.0),
        ("attempt 1 failed", 0.0, 1.0),
        ("record 0", 1.5, 2.0),
        ("attempt 2", 1.5, 2.0),
    ]
    assert waits_of(trace) == [("backoff", 0, 1.0, 1.5)]
    assert spans_of(trace, "attempt")[0]["args"] == {"sequence": 0, "outcome": "failed", "error": "OSError"}
    assert [span["args"]["outcome"] for span in spans_of(trace, "record")] == ["gave its slot back", "completed"]
    assert spans_of(trace, "record")[1]["args"] == {
        "sequence": 0,
        "label": "record 0",
        "outcome": "completed",
        "attempts": 2,
        "outputs": 1,
    }


async def test_a_result_that_is_retried_ends_its_attempt(autojump_clock: MockClock) -> None:
    function = Scripted({"a": [Step(1.0, None), Step(1.0)]})
    retry = FixedDelay(3, 0.5, retry_on_result=lambda result: result is None)
    trace = await recorded("a", function, retry=retry)
    assert [name for name, _, _ in parts_of(trace, 0)] == [
        "record 0",
        "attempt 1 gave a result that is retried",
        "record 0",
        "attempt 2",
    ]


async def test_a_handler_is_a_part_of_the_invocation(autojump_clock: MockClock) -> None:
    trace = await recorded(
        "a", Scripted(default=Step(math.inf)), timeout=2.0, on_timeout=Scripted(default=Step(0.25, "late"))
    )
    assert parts_of(trace, 0) == [
        ("record 0", 0.0, 2.25),
        ("attempt 1 timed out", 0.0, 2.0),
        ("on_timeout", 2.0, 0.25),
    ]


async def test_the_handler_of_a_refused_retry_is_in_a_stay_of_its_own(autojump_clock: MockClock) -> None:
    async def replaced(value: str, error: Exception) -> str:
        await trio.sleep(2.0)
        return value

    function = Scripted(default=Step(1.0, error=OSError))
    options: Any = {"retry": FixedDelay(1, 0.5), "gate": Refusing(after=1.0), "on_error": replaced}
    trace = await recorded("a", function, **options)
    assert parts_of(trace, 0) == [
        ("record 0", 0.0, 1.0),
        ("attempt 1 failed", 0.0, 1.0),
        ("record 0", 1.5, 2.0),
        ("on_error", 1.5, 2.0),
    ]


async def test_waits_for_a_slot_and_for_the_order_are_beside_the_slots(autojump_clock: MockClock) -> None:
    trace = await recorded("abc", Scripted({"a": Step(3.0)}, default=Step(1.0)), capacity=2)
    assert waits_of(trace) == [
        ("wait for a slot", 2, 0.0, 1.0),
        ("wait for the output order", 1, 1.0, 3.0),
        ("wait for the output order", 2, 2.0, 3.0),
    ]


async def test_a_slow_consumer_is_waited_for(autojump_clock: MockClock) -> None:
    recorder = TraceRecorder()
    async with ordered_wait("a", Scripted(default=Step(1.0)), timeout=9.0, observer=recorder) as results:
        await trio.sleep(4.0)
        await results.receive()
    assert waits_of(recorder.trace()) == [("wait for the consumer", 0, 1.0, 4.0)]


async def test_a_trace_of_a_running_operator_shows_spans_until_its_last_step(autojump_clock: MockClock) -> None:
    recorder = TraceRecorder()
    function = Scripted({"a": Step(1.0)}, default=Step(5.0))
    async with ordered_wait("abc", function, capacity=2, timeout=9.0, observer=recorder) as results:
        await results.receive()
        trace = recorder.trace()
    check_format(trace)
    assert [(name, start, end) for name, start, end in parts_of(trace, 1)] == [
        ("record 1", 0.0, 1.0),
        ("attempt 1", 0.0, 1.0),
    ]
    assert spans_of(trace, "record")[1]["args"]["unfinished"] is True


async def test_times_are_relative_to_the_first_element(autojump_clock: MockClock) -> None:
    await trio.sleep(17.25)
    trace = await recorded("a", Scripted(default=Step(1.0)))
    assert spans_of(trace, "record")[0]["ts"] == 0


async def test_restored_results_need_no_slot(autojump_clock: MockClock) -> None:
    function = Scripted({"a": Step(5.0)}, default=Step(1.0))
    async with ordered_wait("ab", function, timeout=9.0) as results:
        await trio.sleep(2.0)
        saved = results.snapshot()
    trace = await recorded("", function, restore=saved)
    assert [span["name"] for span in spans_of(trace, "record")] == ["record 0"]
    assert waits_of(trace) == [("wait for the output order", 1, 0.0, 5.0)]


async def test_a_record_that_never_started_is_in_the_trace(autojump_clock: MockClock) -> None:
    recorder = TraceRecorder()
    with pytest.raises(OSError, match="down"):
        await recorded("ab", Scripted(default=Step(error=OSError("down"))), recorder, capacity=1)
    assert waits_of(recorder.trace()) == [("wait for a slot", 1, 0.0, 0.0)]


async def test_equal_runs_have_equal_files(autojump_clock: MockClock, tmp_path: Path) -> None:
    files = []
    for number in range(2):
        await trio.sleep(number / 3)
        recorder = TraceRecorder(tmp_path / f"{number}.json")
        with recorder:
            function = Scripted({"b": fails_first(1, OSError(object()), then=Step(0.1))}, default=Step(0.7))
            await recorded([*"abc", Watermark(object())], function, recorder, retry=FixedDelay(1, 0.3))
        files.append(recorder.path.read_bytes() if recorder.path else b"")
    assert files[0] == files[1]


async def test_values_are_not_recorded_unless_asked_for(autojump_clock: MockClock) -> None:
    function = Scripted(default=Step(error=OSError("secret")))
    trace = await recorded([StreamRecord("secret", 1), Watermark("secret")], function, on_error="skip")
    assert "secret" not in json.dumps(trace)


async def test_values_are_the_names_of_spans_if_asked_for(autojump_clock: MockClock) -> None:
    source = [StreamRecord("Oslo", 1), 7, "x" * 1000, Watermark("noon")]
    trace = await recorded(source, Scripted(default=Step(1.0)), TraceRecorder(values=True))
    names = [span["name"] for span in spans_of(trace, "record")]
    assert names[:2] == ["Oslo", "7"]
    assert len(names[2]) <= 80
    labels = [
        event["args"]["label"] for event in trace["traceEvents"] if event.get("cat") == "watermark" and event["args"]
    ]
    assert labels == ["watermark noon"]


async def test_a_long_run_is_thinned_out_evenly(autojump_clock: MockClock) -> None:
    trace = await recorded(range(100), Scripted(default=Step(1.0)), TraceRecorder(max_records=8), capacity=3)
    assert [span["args"]["sequence"] for span in spans_of(trace, "record")] == [0, 16, 32, 48, 64, 80, 96]
    assert trace["otherData"]["records_left_out"] == 93


async def test_watermarks_do_not_displace_records(autojump_clock: MockClock) -> None:
    source = [element for number in range(50) for element in (number, Watermark(number))]
    trace = await recorded(source, Scripted(default=Step(1.0)), TraceRecorder(max_records=8))
    assert [span["args"]["sequence"] for span in spans_of(trace, "record")] == [0, 16, 32, 48, 64, 80, 96]
    assert trace["otherData"]["watermarks"] == 7
    assert trace["otherData"]["watermarks_left_out"] == 43


async def test_a_record_with_many_retries_has_a_limited_number_of_spans(autojump_clock: MockClock) -> None:
    function = Scripted({"a": fails_first(500, OSError(), then=Step(1.0))})
    trace = await recorded("a", function, timeout=math.inf, retry=FixedDelay(1000, 0.01))
    assert len(trace["traceEvents"]) < 150
    assert spans_of(trace, "record")[0]["args"]["attempts"] == 501


async def test_a_second_run_is_not_mixed_into_the_trace(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = TraceRecorder()
    first = await recorded("ab", Scripted(default=Step(1.0)), recorder)
    assert await recorded("cd", Scripted(default=Step(1.0)), recorder) == first
    assert "create a new one for each run" in caplog.text


async def test_the_file_is_written_when_the_run_fails(autojump_clock: MockClock, tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "run.json"
    with pytest.raises(OSError, match="down"), TraceRecorder(path) as recorder:
        await recorded("a", Scripted(default=Step(1.0, error=OSError("down"))), recorder)
    check_format(json.loads(path.read_bytes()))
    assert files_of(path.parent) == [path]


async def test_a_pickled_recorder_keeps_its_arguments_and_nothing_else(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    recorder = TraceRecorder(tmp_path, name="weather", max_records=3)
    recorder.accepted(0, "a")
    copy = pickle.loads(pickle.dumps(recorder))
    assert (copy.path, copy._recording.name, copy._recording.records.limit) == (tmp_path, "weather", 3)
    assert copy._recording.records.offered == 0


async def test_the_recorder_of_a_task_writes_a_new_file(autojump_clock: MockClock, tmp_path: Path) -> None:
    shared = TraceRecorder(tmp_path)
    for _ in range(2):
        with shared.of_task("weather, stage 3, partition 5") as recorder:
            await recorded("a", Scripted(default=Step(1.0)), recorder)
    paths = files_of(tmp_path)
    assert len(paths) == 2
    for path in paths:
        assert path.name.startswith("weather-stage-3-partition-5-")
        trace = json.loads(path.read_bytes())
        assert trace["traceEvents"][0]["args"] == {"name": "weather, stage 3, partition 5"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_records": 0}, "max_records must be at least 1, got 0"),
        ({"max_records": "x"}, "max_records must be a whole number"),
        ({"name": 3}, "name must be a string, got 3"),
        ({"path": 3}, "path must be a file's path, got 3"),
        ({"values": "no"}, "values must be True or False, got 'no'"),
    ],
    ids=["no records", "text", "name", "path", "values"],
)
def test_invalid_arguments_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        TraceRecorder(**arguments)


async def test_records_that_share_a_call_share_its_spans(autojump_clock: MockClock) -> None:
    attempts: list[int] = []

    async def second_fails_once(values: str) -> list[Any]:
        attempts.append(len(values))
        await trio.sleep(1.0)
        return [OSError() if value == "b" and len(attempts) == 1 else value for value in values]

    trace = await recorded("abc", second_fails_once, group=3, capacity=2, retry=FixedDelay(1, 0.5))
    shared, again = spans_of(trace, "record")
    assert (shared["name"], shared["tid"], shared["dur"]) == ("3 records", 1, 1_000_000)
    outcomes = [(record["sequence"], record["outcome"]) for record in shared["args"]["records"]]
    assert outcomes == [(0, "completed"), (1, "gave its slot back"), (2, "completed")]
    assert (again["name"], again["tid"], again["ts"]) == ("1 record", 1, 1_500_000)
    first, second = spans_of(trace, "attempt")
    assert [record.get("error") for record in first["args"]["records"]] == [None, "OSError", None]
    assert (first["name"], second["name"]) == ("attempt 1", "attempt 2")


async def test_waits_for_a_gate_are_beside_the_slots_and_before_a_retry(autojump_clock: MockClock) -> None:
    script = Scripted({"a": fails_first(1, OSError, Step(1.0))}, default=Step(1.0))
    trace = await recorded("ab", script, retry=FixedDelay(1, 1.0), gate=RateLimit(0.2), capacity=2)
    assert sorted(waits_of(trace)) == [
        ("backoff", 0, 0.0, 1.0),
        ("wait for a gate", 0, 1.0, 5.0),
        ("wait for a gate", 1, 0.0, 10.0),
    ]
    assert parts_of(trace, 0) == [
        ("record 0", 0.0, 0.0),
        ("attempt 1 failed", 0.0, 0.0),
        ("record 0", 5.0, 1.0),
        ("attempt 2", 5.0, 1.0),
    ]


def test_a_trace_can_be_written_below_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    TraceRecorder().write("~/run.json")
    assert files_of(tmp_path) == [tmp_path / "run.json"]
    with pytest.raises(TypeError, match="path must be a file's path, got 3"):
        TraceRecorder().write(3)  # type: ignore[arg-type]


def test_the_exception_of_the_run_comes_out_if_the_trace_cannot_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ValueError, match="the run's own"), TraceRecorder(tmp_path):
        raise ValueError("the run's own")
    assert f"{tmp_path} was not written" in caplog.text


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")
    with pytest.raises(TypeError):
        replace_file(path, object())  # type: ignore[arg-type]
    assert path.read_text() == "old"
    assert files_of(tmp_path) == [path]
