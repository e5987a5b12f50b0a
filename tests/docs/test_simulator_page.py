"""The simulator in a browser: it shows the answers of its script, and is usable without a pointer."""

from __future__ import annotations

import json
import re
from html import unescape
from urllib.parse import urlencode

import pytest

from tests.docs.browser import dom_of
from tests.docs.simulator import PAGE, answers

pytestmark = pytest.mark.browser

# Capacity, buffer / capacity, latency in ms, stragglers in %, their length in ms, calls/s
QUERIES = [
    {"capacity": 1, "buffer": 1, "latency": 50, "share": 10, "straggler": 1000, "rate": 0},
    {"capacity": 7, "buffer": 4, "latency": 33, "share": 3, "straggler": 700, "rate": 0},
    {"capacity": 100, "buffer": 10, "latency": 10, "share": 1, "straggler": 1000, "rate": 2000},
]


def shown(query: dict[str, int]) -> tuple[dict[str, object], str]:
    """The answers in the page, and its HTML."""
    page = dom_of(PAGE, urlencode({**query, "records": 2000, "seed": 3}))
    [found] = re.findall(r'<script type="application/json" id="answers">(.*?)</script>', page, re.DOTALL)
    return json.loads(found), page


def settings_of(query: dict[str, int]) -> dict[str, float]:
    return {
        "capacity": query["capacity"],
        "buffer": query["buffer"] * query["capacity"],
        "latency": query["latency"] / 1000,
        "share": query["share"] / 100,
        "straggler": query["straggler"] / 1000,
        "rate": query["rate"],
        "records": 2000,
        "seed": 3,
    }


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: f"capacity {query['capacity']}")
def test_the_page_shows_the_answers_for_the_settings_in_its_address(query: dict[str, int]) -> None:
    found, page = shown(query)
    expected, _ = answers(settings_of(query))
    for bar, shown_bar in zip(expected["bars"], found["bars"], strict=True):
        bar["first"] = bar["first"][:60]
        assert shown_bar == bar
    rows = re.findall(r'<th scope="row">(ordered_wait[^<]*|unordered_wait[^<]*)</th><td>([^<]+)</td>', page)
    assert [name for name, _ in rows] == [bar["name"] for bar in expected["bars"]]
    texts = [f"{bar['throughput']:.1f}" if bar["throughput"] < 10 else None for bar in expected["bars"]]
    assert [value for _, value in rows if "." in value] == [text for text in texts if text]


def test_the_page_draws_sixty_records_and_has_them_as_a_table() -> None:
    _, page = shown(QUERIES[1])
    drawing = re.findall(r"<svg.*?</svg>", page, re.DOTALL)[0]
    assert drawing.count("<circle") == 60
    assert 'role="img"' in drawing
    assert "<title id=" in drawing
    table = page.partition('<tbody id="records">')[2].partition("</tbody>")[0]
    assert table.count("<tr>") == 60


def test_each_control_has_a_label_and_a_text_for_its_value() -> None:
    _, page = shown(QUERIES[2])
    sliders = re.findall(r"<input [^>]*>", page)
    assert len(sliders) == 6
    for slider in sliders:
        [name] = re.findall(r'id="(\w+)"', slider)
        assert f'<label for="{name}">' in page
        assert re.search(r'aria-valuetext="[^"]+"', slider)
    texts = [unescape(text) for text in re.findall(r'aria-valuetext="([^"]+)"', page)]
    assert texts == ["100", "10 \N{MULTIPLICATION SIGN} capacity = 1,000", "10 ms", "1 %", "1,000 ms", "2,000 calls/s"]
