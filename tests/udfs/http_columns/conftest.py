"""Short backoffs for the tests of HTTP columns."""

from __future__ import annotations

import pytest

from udfs.http_columns import _options


@pytest.fixture(autouse=True)
def _short_backoffs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_options, "_FIRST_BACKOFF", 0.01)
