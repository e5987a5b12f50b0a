"""Pictures of runs that a TraceRecorder recorded."""

from __future__ import annotations

import json
import pickle
from contextlib import chdir, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from pictures.drawing import Bar, Panel, panels_of, timeline
from pictures.figure import box, text
from pictures.lanes import LEFT, Lanes, by_slot, row
from pictures.runs import record, run, script
from trio_asyncio_io import keyed_wait, ordered_wait, unordered_wait
from trio_asyncio_io.testing import Recorder, Scripted, Step


def why_async() -> str:
    """D1: eight calls in three ways."""
    module = script("learn_why_async")
    lanes = Lanes("Eight calls: one after another, in batches of four, always four", 2.8)
    for name, way in {
        "one after another: 2.8 s": module.one_after_another,
        "two batches of four: 1.3 s, each waits for its slowest call": module.in_batches,
        "always four at once: 0.9 s": module.always_four,
    }.items():
        recorder = Recorder(module.call)
        run(way, recorder)
        calls = sorted(recorder.calls, key=lambda call: call.value)
        rows = [row(f"call {each.value}", [("run", each.started, each.ended)]) for each in calls]
        lanes.draw_panel(Panel(name, rows, []))
    lanes.draw_axis()
    lanes.draw_keys({"run": "waiting for the service"})
    return lanes.svg(
        "Three panels with the same eight calls. One after another they take 2.8 seconds. In two batches of four "
        "they take 1.3 seconds, because the second batch starts when the slowest call of the first has ended. "
        "With four calls running at any time they take 0.9 seconds, as long as the slowest one.",
        "why-async",
    )


def order() -> str:
    """D3: three orders of the same six records."""
    module = script("learn_order")
    traces = [
        record("ordered_wait: input order", module.show, "ordered", ordered_wait),
        record("unordered_wait: completion order", module.show, "unordered", unordered_wait),
        record("keyed_wait: input order per account", module.show, "keyed", keyed_wait, key=module.account),
    ]
    return timeline(*traces, title="The same six payments in three orders")


def watermarks() -> str:
    """D4: the wall. Without watermarks, the whole stream is one segment."""
    module = script("learn_watermarks")
    records = [each for each in module.ELEMENTS if isinstance(each, str)]
    traces = [
        record("unordered, without watermarks (processing time)", module.show, "", unordered_wait, records),
        record("unordered, with w1 and w2 (event time)", module.show, "", unordered_wait, module.ELEMENTS),
        record("ordered, with w1 and w2", module.show, "", ordered_wait, module.ELEMENTS),
    ]
    return timeline(*traces, title="w1 r1 r2 r3 w2 r4: no record crosses a watermark")


def head_of_line() -> str:
    """D5: a straggler at the head, with both sizes of the buffer."""
    module = script("learn_capacity")
    lanes = Lanes("A straggler at the head of ordered output, 20 records, four slots", 5.0)
    for buffer, end in ((4, 5.0), (40, 3.5)):
        trace = record("operator", module.straggler, buffer)
        name = f"buffer={buffer}" + (" = capacity, as in Flink: 5.0 s" if buffer == 4 else ": 3.5 s")
        lanes.draw_panel(by_slot(name, trace, 4, end, lambda label: "late" if label == "0" else "run"))
    lanes.draw_axis()
    lanes.draw_keys({"run": "a call of 0.5 s", "late": "the straggler: record 0, 3 s", "idle": "the slot is idle"})
    return lanes.svg(
        "Two panels with a row for each of four slots. With a buffer of 4, three slots are idle from 0.5 to 3 "
        "seconds, because three completed records fill the buffer behind the straggler; the run takes 5 seconds. "
        "With a buffer of 40 the three slots work all the time, and the run takes 3.5 seconds.",
        "head-of-line",
    )


def snapshots() -> str:
    """D10: a run until its snapshot, the snapshot, and the run that restores it, on one axis."""
    module = script("learn_snapshot")
    received, saved = run(module.first_run, "abcdef")
    before, after = panels_of(
        record("first run: stopped at 0.8 s, with A and C received", module.first_run, "abcdef"),
        record("second run: restore=snapshot", module.second_run, "", saved),
    )
    elements = pickle.loads(saved).elements
    assert received == ["A", "C"]
    restart = 1.2
    lanes = Lanes("A snapshot waits for no call", restart + 1.4)
    lanes.draw_panel(before)
    lanes.y += 34
    lanes.parts.append(text(14, lanes.y, "the snapshot", "name"))
    for number, each in enumerate(elements):
        look, content = ("box", each.element) if each.results is None else ("done", f"{each.element}, {each.results}")
        lanes.parts.append(box(LEFT + 92 * number, lanes.y - 18, 84, 28, content, look))
    lanes.y += 4
    for each in after.rows:
        is_done = elements[each.sequence].results is not None
        each.bars = [moved(bar, restart, "consumer" if is_done else "repeated") for bar in each.bars]
        at = 0 if is_done else each.emitted
        each.emitted = None if at is None else at + round(restart * 1e6)
    lanes.draw_panel(after)
    lanes.draw_axis()
    lanes.draw_keys(
        {
            "run": "call, in a slot",
            "cancelled": "call that was cancelled at the stop",
            "repeated": "call that is made again",
            "dot": "received by the consumer: once",
        }
    )
    return lanes.svg(
        "First run: a and c are received. At 0.8 seconds b, d and f are running and e is completed. The snapshot "
        "has b, d and f without results and e with its result. Second run: e comes out without a call, and b, d "
        "and f are called again. Each of the six results is received once.",
        "snapshots",
    )


def moved(bar: Bar, seconds: float, look: str) -> Bar:
    shift = round(seconds * 1e6)
    return Bar(look if bar.look == "run" else bar.look, bar.start + shift, bar.end + shift)


def time_limits() -> str:
    """D7: deadline, cancellation, unwinding, handler, free slot."""
    trace = record("timeout=1.0", script("learn_time_limits").main)
    return timeline(
        trace, title="A timeout of one second cancels the call, waits until it has unwound, and calls on_timeout"
    )


def trace_run() -> str:
    """The trace that the page on watching a run shows."""
    with TemporaryDirectory() as folder, chdir(folder):
        run(script("trace_run").main)
        return timeline(json.loads(Path("run.json").read_bytes()), title="Six lookups in three slots, in input order")


def retries() -> str:
    """D8: attempts and backoffs of one slot and one deadline."""
    trace = record("timeout=3.0, attempt_timeout=1.0", script("learn_retries").main)
    return timeline(trace, title="Five elements with their calls and backoffs")


def failures() -> str:
    """D9: the first failure ends the run."""
    trace = record('on_error="raise"', script("learn_failures").first_failure_ends_the_run)
    return timeline(trace, title="The first failure cancels all running calls")


def structured() -> str:
    """A nursery ends with its last task, and a failure cancels the others."""
    lanes = Lanes("A nursery ends when its last task has ended", 0.3)
    slow = Step(0.3)
    lanes.draw_panel(_nursery("both tasks return", {"quick": Step(0.1), "slow": slow}))
    lanes.draw_panel(_nursery("the first task raises", {"broken": Step(0.1, error=OSError), "slow": slow}))
    lanes.draw_axis()
    lanes.draw_keys(
        {"run": "task", "failed": "task that raises", "cancelled": "cancelled task: its finally blocks run"}
    )
    return lanes.svg(
        "Two nurseries with two tasks. In the first, the tasks take 0.1 and 0.3 seconds, and the block ends at 0.3 "
        "seconds. In the second, a task raises at 0.1 seconds; the other one is cancelled, and the block ends then.",
        "structured",
    )


def _nursery(name: str, steps: dict[str, Step]) -> Panel:
    """A run of a nursery with a task for each step."""
    recorder = Recorder(Scripted(steps))

    async def main() -> float:
        with suppress(BaseExceptionGroup):
            async with trio.open_nursery() as nursery:
                for each in steps:
                    nursery.start_soon(recorder, each)
        return trio.current_time()

    end = run(main)
    rows = []
    for call in sorted(recorder.calls, key=lambda call: list(steps).index(call.value)):
        look = "cancelled" if call.cancelled else "failed" if call.error else "run"
        rows.append(row(call.value, [(look, call.started, call.ended or end)]))
    return Panel(name, rows, [(round(end * 1e6), "the block ends")])
