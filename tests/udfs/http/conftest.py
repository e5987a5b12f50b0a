"""What httpx's own client, with which the tests compare, depends on."""

from __future__ import annotations

import httpx
import pytest


@pytest.fixture(autouse=True)
def _without_optional_codings(monkeypatch: pytest.MonkeyPatch) -> None:
    """httpx accepts further content codings if their packages are installed."""
    monkeypatch.setattr(httpx._client, "ACCEPT_ENCODING", "gzip, deflate")
