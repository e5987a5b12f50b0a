"""The timeline: a drawing in which every record has a row with bars."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, Watermark, keyed_wait, ordered_wait, unordered_wait
from trio_asyncio_io._watch.timeline import LEFT, WIDTH
from trio_asyncio_io.gates import Budget
from trio_asyncio_io.testing import Scripted, Step, fails_first
from trio_asyncio_io.trace import TraceRecorder, merge, timeline

SVG = "{http://www.w3.org/2000/svg}"


def trace_of(operator_of: Any, source: Any, function: Any, *, values: bool = True, **options: Any) -> Any:
    recorder = TraceRecorder(name=operator_of.__name__, values=values, every=options.pop("every", 1))

    async def main() -> None:
        with trio.move_on_after(100.0):
            async with operator_of(source, function, observer=recorder, **{"timeout": 9.0, **options}) as results:
                async for _ in results:
                    pass

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return recorder.trace()


async def call(value: str) -> str:
    await trio.sleep(float(value[2:]))
    return value


ELEMENTS = ["a:.3", "b:.1", Watermark("noon"), "c:.5", "b:.2", "a:.4"]


def drawn(trace: Any, **options: Any) -> ET.Element:
    return ET.fromstring(timeline(trace, **options))


def rows_of(drawing: ET.Element) -> dict[str, ET.Element]:
    """By label, those of the last panel."""
    return {row.findtext(f"{SVG}text", ""): row for row in drawing.iter(f"{SVG}g") if row.get("class") == "row"}


def looks_of(row: ET.Element) -> list[str]:
    return [shape.get("class", "") for shape in row if shape.tag not in {f"{SVG}title", f"{SVG}text"}]


def texts_of(drawing: ET.Element) -> list[str]:
    return [text.text or "" for text in drawing.iter(f"{SVG}text")]


def test_every_record_of_every_operator_has_a_row_with_a_bar() -> None:
    panels = [(ordered_wait, {}), (unordered_wait, {}), (keyed_wait, {"key": lambda value: value[0]})]
    trace = merge([trace_of(operator_of, ELEMENTS, call, **options) for operator_of, options in panels])
    rows = [row for row in drawn(trace).iter(f"{SVG}g") if row.get("class") == "row"]
    assert [row.findtext(f"{SVG}text") for row in rows] == ["a:.3", "b:.1", "c:.5", "b:.2", "a:.4"] * 3
    assert all("run" in looks_of(row) and "emitted" in looks_of(row) for row in rows)


def test_each_kind_of_time_has_its_look() -> None:
    function = Scripted(
        {"b": [Step(0.5, error=OSError()), Step(0.2)], "c": Step(math.inf), "d": Step(0.1)}, default=Step(3.0)
    )
    trace = trace_of(
        ordered_wait,
        "abcd",
        function,
        capacity=3,
        timeout=4.0,
        retry=FixedDelay(1, 0.25),
        on_timeout=Scripted(default=Step(1.0)),
    )
    rows = rows_of(drawn(trace))
    assert looks_of(rows["a"]) == ["run", "emitted"]
    assert looks_of(rows["b"]) == ["failed", "backoff", "run", "order", "emitted"]
    assert looks_of(rows["c"]) == ["late", "handler", "emitted"]
    assert looks_of(rows["d"]) == ["slot", "run", "order", "emitted"]


def test_a_cancelled_invocation_has_a_cross_and_no_output() -> None:
    rows = rows_of(drawn(trace_of(ordered_wait, "a", Scripted(default=Step(math.inf)), timeout=math.inf)))
    assert looks_of(rows["a"]) == ["cancelled", "cross"]


def test_the_lengths_of_bars_are_proportional_to_time() -> None:
    rows = rows_of(drawn(trace_of(unordered_wait, ["a:1.5", "b:3"], call)))
    first, second = (float(rows[label][2].get("width", "")) for label in ("a:1.5", "b:3"))
    assert second == pytest.approx(2 * first)


def test_a_watermark_is_a_named_wall_across_the_rows() -> None:
    drawing = drawn(trace_of(unordered_wait, ELEMENTS, call))
    walls = [group for group in drawing.iter(f"{SVG}g") if group.get("class") == "watermark"]
    assert [wall.findtext(f"{SVG}title") for wall in walls] == ["watermark noon"]
    [line] = walls[0].findall(f"{SVG}line")
    assert line.get("x1") == line.get("x2")
    assert "watermark noon" in texts_of(drawing)


def test_many_watermarks_have_as_many_names_as_there_is_room_for() -> None:
    source = [each for number in range(200) for each in (number, Watermark(number))]
    drawing = drawn(trace_of(ordered_wait, source, Scripted(default=Step(1.0)), capacity=1), max_rows=500)
    names = [text for text in texts_of(drawing) if text.startswith("watermark ")]
    assert 2 <= len(names) <= 6


def test_the_legend_has_what_the_drawing_has_and_no_more() -> None:
    texts = texts_of(drawn(trace_of(unordered_wait, ["a:1"], call)))
    assert {"call, in a slot", "received by the consumer"} <= set(texts)
    assert not {"failed call", "waits for a slot", "watermark, received"} & set(texts)


def test_a_drawing_has_a_title_and_a_description_in_words() -> None:
    drawing = drawn(trace_of(unordered_wait, ["a:1"], call), title="Weather <& more>")
    title, description = drawing.find(f"{SVG}title"), drawing.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert title.text == "Weather <& more>"
    assert drawing.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert drawing.get("role") == "img"
    assert description.text == (
        "A timeline of 1 s. unordered_wait: 1 record. a:1 completed after 1 call in slot 1, 1 s."
    )


def test_a_drawing_has_a_size_of_its_own() -> None:
    """A browser would fit a file without one into its window."""
    root = drawn(trace_of(ordered_wait, ELEMENTS, call))
    assert root.attrib["viewBox"] == f"0 0 {root.attrib['width']} {root.attrib['height']}"


def test_a_long_title_is_broken_into_lines() -> None:
    texts = texts_of(drawn(trace_of(unordered_wait, ["a:1"], call), title="wide " * 30))
    assert " ".join(texts[:3]) == " ".join(["wide"] * 30)


def test_records_beyond_the_limit_are_counted() -> None:
    drawing = drawn(trace_of(unordered_wait, range(30), Scripted(default=Step(1.0)), every=3), max_rows=4)
    assert list(rows_of(drawing)) == ["0", "3", "6", "9"]
    assert "4 of 10 records: those that failed or took longest" in texts_of(drawing)
    assert "20 more records were not recorded" in texts_of(drawing)


def test_the_records_that_failed_and_the_slow_ones_are_drawn_first() -> None:
    script = {7: Step(8.0), 12: Step(0.1, error=OSError()), 25: Step(5.0), 28: Step(math.inf)}
    source = [each for number in range(30) for each in (number, Watermark(number))]
    trace = trace_of(ordered_wait, source, Scripted(script, default=Step(1.0)), on_error="skip")
    drawing = drawn(trace, max_rows=4)
    assert list(rows_of(drawing)) == ["7", "12", "25", "28"]
    assert "4 of 30 records: those that failed or took longest" in texts_of(drawing)
    walls = [group for group in drawing.iter(f"{SVG}g") if group.get("class") == "watermark"]
    assert len(walls) == 30
    assert all(LEFT <= float(wall.findall(f"{SVG}line")[0].get("x1", "")) <= WIDTH for wall in walls)


@pytest.mark.parametrize("name", ["a\x00b", "a\x1b[31m", "a\ud800", "\ufffe"])
def test_names_and_titles_without_a_place_in_xml_are_escaped(name: str, tmp_path: Path) -> None:
    trace = TraceRecorder(name=name).trace()
    for drawing in (timeline(trace), timeline(trace, title=name)):
        (tmp_path / "run.svg").write_text(drawing, encoding="utf-8")
        assert ET.parse(tmp_path / "run.svg").getroot().findtext(f"{SVG}title") == repr(name)[1:-1]


def test_without_values_a_record_has_its_number_as_label() -> None:
    trace = trace_of(unordered_wait, ["secret"], Scripted(default=Step(1.0)), values=False)
    assert "secret" not in timeline(trace)
    assert list(rows_of(drawn(trace))) == ["record 0"]


def test_a_record_that_has_an_output_without_a_call_can_be_drawn() -> None:
    """A gate refuses it, and the handler answers at once."""

    async def source() -> AsyncIterator[str]:
        for value in ["a:.1", "b:.1"]:
            yield value
            await trio.sleep(1.0)

    async def replace(value: str, error: Exception) -> str:
        return "refused"

    trace = trace_of(ordered_wait, source(), call, gate=Budget(1), on_error=replace)
    assert list(rows_of(drawn(trace))) == ["a:.1", "b:.1"]


def test_a_run_without_elements_can_be_drawn() -> None:
    assert drawn(TraceRecorder(name="nothing").trace()).findtext(f"{SVG}title") == "nothing"


def test_hostile_values_are_text() -> None:
    trace = trace_of(unordered_wait, ["</svg><script>", "\x00\x1b"], Scripted(default=Step(1.0)))
    drawing = drawn(trace)
    assert drawing.find(f".//{SVG}script") is None
    assert "</svg><scr…" in rows_of(drawing)


@pytest.mark.parametrize(
    ("seconds", "unit", "ticks"),
    [
        (7.0, "s", ["0", "1", "2", "3", "4", "5", "6", "7"]),
        (0.0421, "ms", ["0", "5", "10", "15", "20", "25", "30", "35", "40"]),
        (0.000009, "µs", ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]),
        (3000.0, "s", ["0", "500", "1000", "1500", "2000", "2500", "3000"]),
    ],
    ids=["seconds", "milliseconds", "microseconds", "an hour"],
)
def test_the_axis_has_round_ticks_and_its_unit(seconds: float, unit: str, ticks: list[str]) -> None:
    trace = trace_of(unordered_wait, ["a"], Scripted(default=Step(min(seconds, 90.0))), timeout=math.inf)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            event["dur"] = round(seconds * 1e6)
    soft = [text.text for text in drawn(trace).iter(f"{SVG}text") if text.get("class") == "soft"]
    assert unit in soft
    assert [text for text in soft if text and text[0].isdigit()] == ticks


def test_nothing_is_outside_the_drawing() -> None:
    function = Scripted({"b": fails_first(1, OSError(), then=Step(0.7))}, default=Step(2.0))
    source = ["a", Watermark("a long time ago"), "b", Watermark("z")]
    drawing = drawn(trace_of(ordered_wait, source, function, retry=FixedDelay(1, 0.25)))
    height = float(drawing.get("viewBox", "").split()[-1])
    for shape in (shape for group in [drawing, *rows_of(drawing).values()] for shape in group):
        ends = [float(shape.get(key, 0)) for key in ("x", "x1", "x2", "cx")]
        assert all(0 <= end <= WIDTH for end in ends)
        assert 0 <= float(shape.get("y", shape.get("y2", 0))) <= height


def test_equal_traces_have_equal_drawings() -> None:
    assert timeline(trace_of(ordered_wait, ELEMENTS, call)) == timeline(trace_of(ordered_wait, ELEMENTS, call))
