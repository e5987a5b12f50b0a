"""The demo's source data: how much there is, its keys and its values."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from udfs.demo import _flights
from udfs.demo._flights import flights_csv, planes, weather, weather_csv

pytestmark = pytest.mark.slow


def test_there_are_336_776_flights(tmp_path: Path) -> None:
    assert len(pd.read_csv(flights_csv(tmp_path))) == 336_776


def test_keys_are_unique() -> None:
    assert len({(row["origin"], row["time_hour"]) for row in weather()}) == len(list(weather())) == 26_115
    assert len({row["tailnum"] for row in planes()}) == len(list(planes())) == 3_322


def test_an_observation_has_numbers_and_nulls() -> None:
    [row] = [row for row in weather() if (row["origin"], row["time_hour"]) == ("EWR", "2013-01-01T10:00:00Z")]
    assert row == {
        "origin": "EWR",
        "year": 2013,
        "month": 1,
        "day": 1,
        "hour": 5,
        "temp": 39.02,
        "dewp": 28.04,
        "humid": 64.43,
        "wind_dir": 260,
        "wind_speed": 12.658579999999999,
        "wind_gust": None,
        "precip": 0.0,
        "pressure": 1011.9,
        "visib": 10.0,
        "time_hour": "2013-01-01T10:00:00Z",
    }


def test_a_model_that_looks_like_a_number_is_a_string() -> None:
    models = [row["model"] for row in planes()]
    assert "150" in models
    assert all(isinstance(model, str) for model in models)


def test_every_row_can_be_encoded_as_json() -> None:
    for row in [*weather(), *planes()]:
        json.dumps(row, allow_nan=False)


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_flights, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"in a clone, pip install '\.\[demo\]'"):
        weather_csv()
