"""The simulator in a browser: it shows the answers of its script, and can be read and used without a pointer."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

from tests.docs.simulator import PAGE, answers
from tests.real.browser._chromium import NEEDS_CHROMIUM, Chromium
from tests.real.browser._looks import CONTRASTS, OUTSIDE

pytestmark = [pytest.mark.processes, NEEDS_CHROMIUM]

# Capacity, buffer / capacity, latency in ms, stragglers in %, their length in ms, calls/s
QUERIES = [
    {"capacity": 1, "buffer": 1, "latency": 50, "share": 10, "straggler": 1000, "rate": 0},
    {"capacity": 7, "buffer": 4, "latency": 33, "share": 3, "straggler": 700, "rate": 0},
    {"capacity": 100, "buffer": 10, "latency": 10, "share": 1, "straggler": 1000, "rate": 2000},
]
ROWS = "[...document.querySelectorAll('#bars tr')].map(row => [row.cells[0].textContent, row.cells[1].textContent])"
MORE = {"records": 2000, "seed": 3}


def show(browser: Chromium, query: dict[str, int], *, width: int = 1200, scheme: str = "light") -> None:
    browser.show(PAGE, width=width, scheme=scheme, query="?" + urlencode(query | MORE))
    assert browser.problems == []


def settings_of(query: dict[str, int]) -> dict[str, Any]:
    seconds = {name: query[name] / 1000 for name in ("latency", "straggler")}
    buffer = query["buffer"] * query["capacity"]
    return query | MORE | seconds | {"buffer": buffer, "share": query["share"] / 100}


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"capacity {query['capacity']}")
def test_the_page_shows_the_answers_for_the_settings_in_its_address(browser: Chromium, query: dict[str, int]) -> None:
    show(browser, query)
    found = browser.evaluate("JSON.parse(document.getElementById('answers').textContent)")
    expected, _ = answers(settings_of(query))
    for bar, shown in zip(expected["bars"], found["bars"], strict=True):
        bar["first"] = bar["first"][:60]
        assert shown == bar
    rows = browser.evaluate(ROWS)
    assert rows == [[bar["name"], text_of(bar["throughput"])] for bar in expected["bars"]]


def text_of(throughput: float) -> str:
    return f"{throughput:.1f}" if throughput < 10 else f"{throughput + 1e-9:,.0f}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_fits_and_can_be_read(browser: Chromium, width: int, scheme: str) -> None:
    show(browser, QUERIES[2], width=width, scheme=scheme)
    assert browser.requests == [browser.evaluate("location.href")]
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate(OUTSIDE) == []
    assert min(browser.evaluate(CONTRASTS)) >= 4.5


def test_the_page_draws_sixty_records_and_has_them_as_a_table(browser: Chromium) -> None:
    show(browser, QUERIES[1])
    assert browser.evaluate("document.querySelectorAll('#timeline [role=img] circle').length") == 60
    assert browser.evaluate("document.querySelector('#timeline title').textContent").startswith("ordered_wait, ")
    assert browser.evaluate("document.querySelectorAll('#records tr').length") == 60


def test_each_control_has_a_label_and_a_text_for_its_value(browser: Chromium) -> None:
    show(browser, QUERIES[2])
    controls = "[...document.querySelectorAll('input, select')]"
    assert browser.evaluate(f"{controls}.filter(each => each.labels.length !== 1).length") == 0
    texts = browser.evaluate("[...document.querySelectorAll('input')].map(each => each.ariaValueText)")
    assert texts == ["100", "10 \N{MULTIPLICATION SIGN} capacity = 1,000", "10 ms", "1 %", "1,000 ms", "2,000 calls/s"]


def test_an_arrow_key_changes_a_setting_and_the_answers(browser: Chromium) -> None:
    show(browser, QUERIES[0])
    browser.evaluate("document.getElementById('capacity').focus()")
    for kind in ("keyDown", "keyUp"):
        browser.send("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert browser.evaluate("document.querySelector('output[for=capacity]').textContent") == "2"
    assert browser.evaluate("JSON.parse(document.getElementById('answers').textContent).settings.capacity") == 2
