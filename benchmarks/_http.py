"""Cost of an HTTP request through `udfs.http.client` and other clients, on loopback."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec

from ._contenders import NOT_INSTALLED
from ._http_clients import CLIENTS, QUICK_CLIENTS, Cost, Workers
from ._http_server import serving
from ._report import Line, Section
from ._rounds import Rounds, alternate

__all__ = ["http"]

CAPACITY = 100
FORMATS = {
    "requests/s": "{:,.0f}",
    "ratio": "{:.2f}",
    "from": "{:.2f}",
    "to": "{:.2f}",
    "μs CPU": "{:.0f}",
    "CPU ratio": "{:.2f}",
    "CPU from": "{:.2f}",
    "CPU to": "{:.2f}",
}


def http(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Requests per second and CPU time per request at a capacity of 100, alternating in one process."""
    with serving() as server:
        context = ssl.create_default_context(cadata=server.authority)
        return [
            _compared("http", CLIENTS, server.url, None, quick=quick, on_step=on_step),
            _compared("https", QUICK_CLIENTS, server.tls_url, context, quick=quick, on_step=on_step),
        ]


def _compared(
    scheme: str,
    clients: Sequence[str],
    url: str,
    context: ssl.SSLContext | None,
    *,
    quick: bool,
    on_step: Callable[[], object],
) -> Section:
    requests, rounds = (1_000, 3) if quick else (6_000, 11)
    runs: dict[str, Callable[[], Cost]] = {}
    for name in clients:
        package, run, fewer = CLIENTS[name]
        if find_spec(package) is not None:
            runs[name] = partial(run, Workers(f"{url}/weather", requests // fewer, CAPACITY, context))
    found = alternate(runs, rounds, on_step)
    section = Section(
        f"{scheme.upper()}: a request through a client",
        f"capacity {CAPACITY}, as many workers, one client, keep-alive, 82 bytes of JSON; the server runs in its own "
        f"process. Median of {rounds} alternating rounds of up to {requests:,} requests. Ratios are to the first line "
        "in the same round, with their quartiles",
        FORMATS,
        name=scheme,
    )
    walls = Rounds({name: [cost.seconds for cost in costs] for name, costs in found.items()})
    cpus = Rounds({name: [cost.cpu for cost in costs] for name, costs in found.items()})
    section.lines.extend(_line(name, walls, cpus) for name in clients)
    return section


def _line(name: str, walls: Rounds, cpus: Rounds) -> Line:
    if name not in walls.numbers:
        return Line(name, {}, note=NOT_INSTALLED)
    (low, high), (cpu_low, cpu_high) = walls.spread(name), cpus.spread(name)
    return Line(
        name,
        {
            "requests/s": 1 / walls.median(name),
            "ratio": walls.ratio(name),
            "from": low,
            "to": high,
            "μs CPU": cpus.median(name) * 1e6,
            "CPU ratio": cpus.ratio(name),
            "CPU from": cpu_low,
            "CPU to": cpu_high,
        },
    )
