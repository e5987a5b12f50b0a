"""The page of a report in a real browser: it fits, can be read in light and dark, and loads and runs nothing."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.real.browser._chromium import NEEDS_CHROMIUM, Chromium
from tests.real.browser._looks import CONTRASTS, OUTSIDE, OVERLAPPING
from trio_asyncio_io import FixedDelay, ordered_wait
from trio_asyncio_io.report import report
from trio_asyncio_io.testing import Scripted, Step

pytestmark = [pytest.mark.processes, NEEDS_CHROMIUM]

HOSTILE = "</style></svg><script>document.title='run'</script><img src='http://127.0.0.1:1/x.png'>" + 300 * "x"


def failing() -> dict[Any, Any]:
    reset = Step(0.01, error=ConnectionError("connection reset"))
    script: dict[Any, Any] = {n: Step(0.001 * 1.02**n) for n in range(400)}
    return script | {n: [reset, Step(0.2)] for n in range(1, 400, 40)} | {7: Step(inf), 8: Step(error=OSError("down"))}


RUNS: dict[str, dict[Any, Any]] = {
    "empty": {},
    "one": {1: Step(0.2)},
    "failing": failing(),
    "hostile": {HOSTILE: Step(0.1, error=OSError(HOSTILE)), 1: Step(1.0)},
}


def page_of(name: str, folder: Path) -> Path:
    async def main() -> None:
        with report(path, title=HOSTILE if name == "hostile" else name, values=True) as observer:
            async with ordered_wait(
                RUNS[name],
                Scripted(RUNS[name]),
                capacity=20,
                timeout=5.0,
                retry=FixedDelay(1, 0.5),
                on_error="skip",
                observer=observer,
            ) as results:
                async for _ in results:
                    pass

    path = folder / "run.html"
    trio.run(main, clock=MockClock(autojump_threshold=0))
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("name", RUNS)
def test_the_page_fits_and_can_be_read(browser: Chromium, name: str, width: int, scheme: str, tmp_path: Path) -> None:
    page = page_of(name, tmp_path)
    browser.show(page, width=width, scheme=scheme)
    assert browser.requests == [page.as_uri()]
    assert browser.problems == []
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(OVERLAPPING) == []
    assert min(browser.evaluate(CONTRASTS)) >= 4.5
    assert browser.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    assert (browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)") == (
        scheme == "light"
    )


def test_each_bar_has_a_tooltip(browser: Chromium, tmp_path: Path) -> None:
    browser.show(page_of("failing", tmp_path), width=1200, scheme="light")
    assert browser.evaluate("document.querySelectorAll('svg.plot').length") == 4
    assert browser.evaluate(
        "[...document.querySelectorAll('rect')].every(each => each.parentNode.querySelector('title'))"
    )


def test_markup_in_the_data_is_text(browser: Chromium, tmp_path: Path) -> None:
    browser.show(page_of("hostile", tmp_path), width=1200, scheme="light")
    assert browser.evaluate("document.querySelectorAll('script, img').length") == 0
    assert browser.evaluate("document.querySelector('h1').textContent") == HOSTILE
