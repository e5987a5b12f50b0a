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
