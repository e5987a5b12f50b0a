"""A fixture for the tests of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def backend() -> Iterator[Any]:
    """Spans and metrics in memory."""
    from tests.libraries.telemetry import Backend  # noqa: PLC0415 - other tests do not need OpenTelemetry

    backend = Backend()
    yield backend
    backend.shutdown()
