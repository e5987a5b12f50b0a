"""A persistent cache that an earlier release wrote stays readable."""

from __future__ import annotations

import shutil
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from trio_asyncio_io import StreamRecord
from trio_asyncio_io.policies import persistent

# Version 0.1.0 wrote it with the modules `policies._store` and `_elements`. It holds the same results under two names,
# one of them with an expiry
FILE = Path(__file__).parent / "flat_layout" / "cache.sqlite"
RESULTS: dict[Any, Any] = {
    "a": "A",
    "b": None,
    "c": [1, 2.5, Decimal("3.0")],
    "d": StreamRecord("D", datetime(2024, 1, 2)),
    (1, 1.0, True, b"x", None): [1, 1.0, True, b"x", None],
}


async def fail(value: Any) -> Any:
    raise AssertionError(value)


@pytest.mark.parametrize("name", ["weather", "expiring"])
async def test_the_results_of_the_flat_layout_are_found(name: str, tmp_path: Path) -> None:
    lookup = persistent(fail, shutil.copy(FILE, tmp_path), name=name)
    await lookup.open()
    found = {value: await lookup(value) for value in RESULTS}
    await lookup.close()
    assert found == RESULTS
    assert lookup.hits == len(RESULTS)
