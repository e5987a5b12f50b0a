"""Watermarks from timestamps and nulls of pandas and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from trio_asyncio_io import Watermark, assign_watermarks


def watermarks(timestamps: list[Any], bound: Any) -> list[Any]:
    elements = assign_watermarks(timestamps, timestamp=lambda value: value, max_out_of_orderness=bound)
    return [element.timestamp for element in elements if isinstance(element, Watermark)]


@pytest.mark.parametrize("null", [pd.NaT, np.datetime64("NaT", "us")], ids=repr)
def test_a_null_timestamp_moves_no_watermark(null: Any) -> None:
    first, second = pd.Timestamp(2024, 1, 1), pd.Timestamp(2024, 1, 2)
    assert watermarks([null, first, null, second, null], pd.Timedelta(0)) == [first, second]


def test_a_null_number_moves_no_watermark() -> None:
    assert watermarks([pd.NA, 1, pd.NA, 2, pd.NA], 0) == [1, 2]


def test_a_null_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="max_out_of_orderness must not be negative, got NaT"):
        watermarks([], pd.NaT)
