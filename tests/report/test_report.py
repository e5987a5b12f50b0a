"""The page about a run: its numbers, its sections, and what it must not show."""

from __future__ import annotations

import json
import pickle
from html.parser import HTMLParser
from math import inf
from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from trio_asyncio_io import FixedDelay, ordered_wait
from trio_asyncio_io.report import report
from trio_asyncio_io.testing import Scripted, Step

VOID = {"meta", "br"}


class Page(HTMLParser):
    """A page: its text by heading, its tables, and a check that its elements are closed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.sections: dict[str, list[str]] = {}
        self.sources: list[str] = []
        self._open: list[str] = []
        self._section: list[str] = []
        self.feed(text_of(path))
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.sources += [value for name, value in attributes if name in {"src", "href"}]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attributes: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["h2"]:
            self._section = self.sections[data] = []
        elif data.strip():
            self._section.append(data)


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.html"


async def run(path: Path, script: Any, elements: Any, *, values: bool = False, **options: Any) -> Page:
    options = {"timeout": 5.0, "capacity": 3, "on_error": "skip", **options}
    with report(path, values=values) as observer:
        async with ordered_wait(elements, Scripted(script, default=Step(1.0)), observer=observer, **options) as results:
            async for _ in results:
                pass
    return Page(path)


async def test_it_has_the_verdict_and_the_options(path: Path, autojump_clock: MockClock) -> None:
    page = await run(path, {}, range(30))
    assert page.sections["What limited it"][0].startswith("30 calls in 10")
    options = page.sections["Options"]
    assert options[options.index("capacity") + 1] == "3"
    assert options[options.index("timeout") + 1] == "5.0"
    assert "retry" not in options


async def test_failures_are_counted_by_type_with_examples(path: Path, autojump_clock: MockClock) -> None:
    script = {n: Step(error=ConnectionError(f"no <route> for {n}")) for n in range(5)} | {7: Step(inf)}
    page = await run(path, script, range(10), capacity=1)
    found = page.sections["What went wrong"]
    assert found[4:10] == [
        "ConnectionError",
        "5",
        "5",
        "record 0: no <route> for 0",
        "record 1: no <route> for 1",
        "record 2: no <route> for 2",
    ]
    assert found[10:] == ["timeout", "1", "1", "record 7 after 5 s"]


async def test_a_failed_call_that_was_retried_counts(path: Path, autojump_clock: MockClock) -> None:
    script = {3: [Step(1.0, error=OSError("busy")), Step(1.0)]}
    page = await run(path, script, range(10), retry=FixedDelay(2, 0.5))
    assert page.sections["What went wrong"][4:] == ["OSError", "1", "0", "record 3: busy"]


async def test_the_slowest_records_come_first(path: Path, autojump_clock: MockClock) -> None:
    script = {4: Step(4.0), 11: [Step(1.0, error=OSError()), Step(1.5)]}
    page = await run(path, script, range(40), retry=FixedDelay(2, 0.5))
    found = page.sections["The slowest records"][4:]
    assert found[:8] == ["record 4", "4 s", "1", "completed", "record 11", "3 s", "2", "completed"]
    assert len(found) == 10 * 4


async def test_values_are_shown_only_if_that_was_asked_for(path: Path, autojump_clock: MockClock) -> None:
    script = {"secret": Step(inf)}
    options: dict[str, Any] = {"retry": FixedDelay(1, 0.0, attempt_timeout=1.0), "timeout": 1.5}
    await run(path, script, ["secret"], **options)
    assert "secret" not in text_of(path)
    await run(path, script, ["secret"], values=True, **options)
    assert "secret" in text_of(path)


async def test_it_needs_nothing_but_itself(path: Path, autojump_clock: MockClock) -> None:
    page = await run(path, {}, range(10))
    assert page.sources == []
    assert "url(" not in text_of(path)


async def test_it_is_written_if_the_run_fails(path: Path, autojump_clock: MockClock) -> None:
    with pytest.raises(OSError, match="down"):
        await run(path, {3: Step(error=OSError("down"))}, range(10), on_error="raise")
    assert "record 3: down" in Page(path).sections["What went wrong"]


def test_without_a_run_it_says_so(path: Path) -> None:
    with report(path):
        pass
    assert "No operator has run with this observer." in text_of(path)


async def test_a_second_report_replaces_the_first(path: Path, autojump_clock: MockClock) -> None:
    await run(path, {}, range(10))
    await run(path, {}, range(20))
    assert "20 calls in" in text_of(path)
    assert [each.name for each in path.parent.iterdir()] == ["run.html"]


async def test_tasks_of_other_processes_write_parts_of_one_page(path: Path, autojump_clock: MockClock) -> None:
    with report(path, title="job") as observer:
        for number in range(3):
            of_task = pickle.loads(pickle.dumps(observer)).of_task(f"task {number}")
            async with ordered_wait(range(10), Scripted(default=Step(1.0)), timeout=5.0, observer=of_task) as results:
                async for _ in results:
                    pass
            of_task.write_part()
    page = Page(path)
    assert "3 tasks" in text_of(path)
    assert "So in 3 of 3 tasks; this is one of them." in page.sections["What limited it"]
    assert "30" in text_of(path)


async def test_parts_of_an_earlier_run_are_not_used(path: Path, autojump_clock: MockClock) -> None:
    parts = path.with_name("run.html.parts")
    parts.mkdir()
    (parts / "killed.json").write_text(json.dumps({}))
    page = await run(path, {}, range(10))
    assert page.sections["What limited it"][0].startswith("10 calls in")
    assert not parts.exists()
