"""Cost of an HTTP request through `udfs.http.client` and other clients, on loopback."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from ._contenders import NOT_INSTALLED
from ._http_clients import CLIENTS, Cost, Workers
from ._http_server import serving
from ._report import Line, Section
from ._rounds import Rounds, alternate

CAPACITY = 100
RATIOS = ("ratio", "from", "to")
FORMATS = {"requests/s": "{:,.0f}", **dict.fromkeys(RATIOS, "{:.2f}"), "μs CPU": "{:.0f}"}


def http(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Requests per second and CPU time per request at a capacity of 100, alternating in one process."""
    requests, rounds = (1_000, 3) if quick else (6_000, 7)
    runs: dict[str, Callable[[], Cost]] = {}
    with serving() as url:
        for name, (package, run, fewer) in CLIENTS.items():
            if find_spec(package) is not None:
                runs[name] = partial(run, Workers(f"{url}/weather", requests // fewer, CAPACITY))
        found = alternate(runs, rounds, on_step)
    section = Section(
        "HTTP: a request through a client",
        f"capacity {CAPACITY}, as many workers, one client, keep-alive, 82 bytes of JSON; the server runs in its own "
        f"process. Median of {rounds} alternating rounds of up to {requests:,} requests. Ratio to the first line "
        "in the same round, with its quartiles",
        FORMATS,
        name="http",
    )
    walls = Rounds({name: [cost.seconds for cost in costs] for name, costs in found.items()})
    cpus = Rounds({name: [cost.cpu for cost in costs] for name, costs in found.items()})
    section.lines.extend(_line(name, walls, cpus) for name in CLIENTS)
    return [section]


def _line(name: str, walls: Rounds, cpus: Rounds) -> Line:
    if name not in walls.numbers:
        return Line(name, {}, note=NOT_INSTALLED)
    values: dict[str, float | None] = {"requests/s": 1 / walls.median(name), "μs CPU": cpus.median(name) * 1e6}
    values |= zip(RATIOS, (walls.ratio(name), *walls.spread(name)), strict=True)
    return Line(name, values)
