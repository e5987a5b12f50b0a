"""Shared by the tests that start Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service import Service


@pytest.fixture
def service() -> Iterator[Service]:
    """A service for one test."""
    made = Service()
    yield made
    made.stop()
