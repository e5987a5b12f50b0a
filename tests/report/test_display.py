"""What a notebook shows: HTML that is escaped and closed, while the repr stays plain text."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from tests.report.report_page import read
from trio_asyncio_io import Histogram, Snapshot, Statistics, Verdict, ordered_wait
from trio_asyncio_io.report import report
from trio_asyncio_io.testing import Scripted, Step

HOSTILE = "</div><script>alert(1)</script>"


def shown(value: Any) -> str:
    return read(value._repr_html_()).text


def test_statistics_show_the_counts_that_are_not_0_and_the_percentiles() -> None:
    latency = Histogram.of([0.1] * 98 + [2.0, 2.0])
    text = shown(Statistics(emitted=12_345, timed_out=2, latency=latency, longest_seconds=2.0))
    times = "p50 p95 p99 longest a record, with all its calls 99.6 ms 99.6 ms 2 s 2 s"
    assert text == f"count emitted 12,345 timed out 2 {times}"


def test_statistics_of_no_run_show_that() -> None:
    assert shown(Statistics()) == "count emitted 0"


def test_a_verdict_shows_its_advice_after_its_sentences() -> None:
    assert shown(Verdict("source", f"Make {HOSTILE}", ("One.", "Two."))) == f"One. Two. Make {HOSTILE}"


def test_statistics_show_the_waits_for_each_gate() -> None:
    assert (
        shown(Statistics(emitted=1, seconds_by_gate={"RateLimit": 1.5})) == "count emitted 1 gated by RateLimit 1.5 s"
    )


async def test_a_report_shows_its_page_in_a_frame_without_scripts(tmp_path: Path, autojump_clock: MockClock) -> None:
    path = tmp_path / "run.html"
    observer = report(path, title=HOSTILE)
    assert "does not exist" in shown(observer)
    with observer:
        async with ordered_wait(range(3), Scripted(default=Step(1.0)), timeout=5.0, observer=observer) as results:
            async for _ in results:
                pass
    frame = read(observer._repr_html_())
    assert frame.attributes["iframe"]["srcdoc"] == path.read_text("utf-8")
    assert frame.attributes["iframe"]["sandbox"] is None
    assert repr(observer) == f"<report {str(path)!r}>"


@pytest.mark.parametrize("value", [Statistics(), Snapshot()], ids=lambda value: type(value).__name__)
def test_the_repr_stays_plain_text(value: Any) -> None:
    assert repr(value).startswith(f"{type(value).__name__}(")
    assert unescape(repr(value)) == repr(value)
