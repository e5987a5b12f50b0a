"""The table of all numbers in docs/guide/gates.md has every default of every gate."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from trio_asyncio_io import RetryBudget
from trio_asyncio_io.gates import AdaptiveCapacity, AdaptiveRate, CircuitBreaker, RateLimit
from trio_asyncio_io.policies import hedged

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "gates.md").read_text(encoding="utf-8")
ROW = re.compile(r'^\| `(\w+)` \| `(\w+)` \| (?:"(\w+)"|([\d.]+))', re.MULTILINE)


@pytest.mark.parametrize("named", [RateLimit, AdaptiveRate, AdaptiveCapacity, CircuitBreaker, hedged, RetryBudget])
def test_the_table_has_all_numbers_and_their_defaults(named: Any) -> None:
    parameters = inspect.signature(named).parameters.values()
    expected = {
        parameter.name: str(parameter.default)
        for parameter in parameters
        if parameter.default not in {inspect.Parameter.empty, None, "pause"}
    }
    found = {option: text or number for name, option, text, number in ROW.findall(PAGE) if name == named.__name__}
    assert found == expected
