"""The questions of docs/tutorial/interactive/which-one.html in a browser: each answer changes the script."""

from __future__ import annotations

from itertools import count

import pytest

from tests.docs.which_one import PAGE, SCRIPTS
from tests.real.browser._chromium import NEEDS_CHROMIUM, Chromium
from tests.real.browser._looks import CONTRASTS

pytestmark = [pytest.mark.processes, NEEDS_CHROMIUM]

NUMBERS = count()
CODE = "document.getElementById('code').textContent"


def show(browser: Chromium, answers: str = "", *, width: int = 1200, scheme: str = "light") -> None:
    number = next(NUMBERS)  # a page that differs only in its fragment would not be loaded again
    browser.show(PAGE, width=width, scheme=scheme, query=f"?{number}#{answers}")
    assert browser.problems == []


def test_the_page_starts_with_the_first_answers(browser: Chromium) -> None:
    show(browser)
    assert browser.evaluate(CODE) == SCRIPTS["rows unordered async stop yes"]


def test_the_address_has_the_answers(browser: Chromium) -> None:
    show(browser, "where=trio&order=keyed&client=blocking&failure=keep&retry=no")
    assert browser.evaluate(CODE) == SCRIPTS["trio keyed blocking keep no"]


def test_a_key_chooses_another_answer(browser: Chromium) -> None:
    show(browser)
    browser.evaluate("document.querySelector('input[name=order]').focus()")
    for kind in ("keyDown", "keyUp"):
        browser.send("Input.dispatchKeyEvent", type=kind, key="ArrowDown", code="ArrowDown", windowsVirtualKeyCode=40)
    assert browser.evaluate(CODE) == SCRIPTS["rows ordered async stop yes"]
    assert "order=ordered" in browser.evaluate("location.hash")


def test_a_column_has_no_question_about_the_order(browser: Chromium) -> None:
    show(browser, "where=column&order=keyed&failure=skip")
    assert browser.evaluate(CODE) == SCRIPTS["column unordered async skip yes"]
    assert browser.evaluate("document.getElementById('order').disabled")
    assert browser.evaluate("document.querySelectorAll('#reasons li').length") == 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_fits_and_can_be_read(browser: Chromium, width: int, scheme: str) -> None:
    show(browser, "where=trio&failure=keep", width=width, scheme=scheme)
    assert browser.requests == [browser.evaluate("location.href.split('#')[0]")]
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    assert min(browser.evaluate(CONTRASTS)) >= 4.5
    assert browser.evaluate("[...document.querySelectorAll('input')].every(each => each.labels.length === 1)")
