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
    ("arguments", "message"),
    [
        ({"budget": 0.0}, r"budget must be a finite number of seconds above 0, got 0\.0"),
        ({"budget": -1}, "budget must be a finite number of seconds above 0, got -1"),
        ({"budget": math.inf}, "budget must be a finite number of seconds above 0, got inf"),
        ({"budget": math.nan}, "budget must be a finite number of seconds above 0, got nan"),
        ({"max_rows": -1}, "max_rows must be at least 0, got -1"),
        ({"budget": 5.0, "max_age": 4.9}, r"max_age must not be below the budget, 5\.0 s, got 4\.9"),
        ({"max_age": math.nan}, "max_age must not be below the budget, .* got nan"),
    ],
    ids=str,
)
def test_a_value_out_of_range_is_an_error_that_names_parameter_and_value(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        CarryOver(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": "5 seconds"}, "budget must be a number of seconds, got '5 seconds'"),
        ({"budget": True}, "budget must be a number of seconds, got True"),
        ({"max_age": None}, "max_age must be a number of seconds, got None"),
        ({"max_rows": 1.5}, r"max_rows must be a whole number, got 1\.5"),
        ({"max_rows": True}, "max_rows must be a whole number, got True"),
    ],
    ids=str,
)
def test_a_value_of_the_wrong_type_is_an_error_that_names_parameter_and_value(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        CarryOver(**arguments)


def test_max_age_may_be_infinite_and_max_rows_may_be_zero() -> None:
    assert CarryOver(max_rows=0, max_age=math.inf).max_age == math.inf
