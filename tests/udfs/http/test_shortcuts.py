"""Shortcuts: with a version of httpx in which one does not hold, the results are the same."""

from __future__ import annotations

import httpx
import pytest

from tests.udfs.http.comparing import same
from udfs.http import _response, _shortcuts, _url


def unknown() -> bool:
    raise AttributeError("_uri_reference")


def test_this_version_of_httpx_is_known() -> None:
    assert _shortcuts.SETS_URL
    assert _shortcuts._SETS_HEADERS
    assert _shortcuts.SETS_CONTENT


@pytest.mark.parametrize(("check", "holds"), [(lambda: True, True), (lambda: False, False), (unknown, False)])
def test_a_check_that_fails_does_not_hold(check: object, holds: bool) -> None:
    assert _shortcuts.holds(check) is holds  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["/json", "/chunked", "/gzip", "/twice", "/cookie", "/303", "/json?a=%20"])
async def test_the_long_way_is_the_same(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    async def use(http: httpx.AsyncClient) -> httpx.Response:
        return await http.get(str(http.base_url)[:-1] + path, headers={"X": "1"}, follow_redirects=True)

    monkeypatch.setattr(_url, "SETS_URL", False)
    monkeypatch.setattr(_shortcuts, "_SETS_HEADERS", False)
    monkeypatch.setattr(_response, "SETS_CONTENT", False)
    await same(use)
