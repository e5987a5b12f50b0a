"""Arguments of the DataFrame operators. The queries themselves are tested in tests/real/spark."""

from __future__ import annotations

from typing import Any

import pytest

from udfs import ordered_wait


@pytest.mark.parametrize("arguments", [{"event_time": "at"}, {"max_out_of_orderness": "10 seconds"}], ids=str)
def test_ordered_wait_refuses_event_time_and_names_unordered_wait(arguments: dict[str, Any]) -> None:
    df: Any = None  # it is not read
    with pytest.raises(TypeError, match=r"^ordered_wait has no event_time: .* or use unordered_wait$"):
        ordered_wait(df, str, "answer string", timeout=5.0, **arguments)
