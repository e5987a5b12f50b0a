"""Options of carry-over."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from udfs import CarryOver


def test_carry_over_pickles_and_compares_by_value() -> None:
    made = CarryOver(budget=1.5, max_rows=7, max_age=60.0)
    assert pickle.loads(pickle.dumps(made)) == made


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"budget": 0.0}, ValueError, r"budget must be a finite number of seconds above 0, got 0\.0"),
        ({"budget": math.nan}, ValueError, "budget must be a finite number of seconds above 0, got nan"),
        ({"max_rows": -1}, ValueError, "max_rows must be at least 0, got -1"),
        ({"budget": 5.0, "max_age": 4.9}, ValueError, r"max_age must be at least the budget, 5\.0 s, got 4\.9"),
        ({"max_age": math.nan}, ValueError, "max_age must be at least the budget, .* got nan"),
        ({"budget": "5 seconds"}, TypeError, "budget must be a number of seconds, got '5 seconds'"),
        ({"max_age": None}, TypeError, "max_age must be a number of seconds, got None"),
        ({"max_rows": 1.5}, TypeError, r"max_rows must be a whole number, got 1\.5"),
    ],
    ids=str,
)
def test_a_bad_value_is_an_error_that_names_parameter_and_value(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        CarryOver(**arguments)


def test_max_age_may_be_infinite_and_max_rows_may_be_zero() -> None:
    assert CarryOver(max_rows=0, max_age=math.inf).max_age == math.inf
