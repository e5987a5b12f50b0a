"""Cost of an HTTP request through `udfs.http.client` and other clients, on loopback."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass

from ._contenders import NOT_INSTALLED
from ._http_clients import CLIENTS, QUICK_CLIENTS, Cost, Workers, is_installed
from ._http_server import Server, reset, served, serving
from ._report import Line, Section
from ._rounds import Rounds, measure

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
    "requests": "{:,.0f}",
}


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Clients that make the same requests.

    Attributes:
        title: The heading of its section.
        name: The name of its section.
        body: The size of a body.
        clients: The names of the clients.
        is_large: Whether the bodies have 100 kB.
        has_tls: Whether the requests use TLS.
    """

    title: str
    name: str
    body: str
    clients: tuple[str, ...]
    is_large: bool = False
    has_tls: bool = False

    def requests(self, *, quick: bool) -> int:
        """Requests in a round of the fastest clients."""
        return (1_000 if quick else 6_000) // (5 if self.is_large else 1)


COMPARISONS = (
    _Comparison("HTTP: a request through a client", "http", "82 bytes", tuple(CLIENTS)),
    _Comparison("HTTP: large bodies", "http large", "100 kB", QUICK_CLIENTS, is_large=True),
    _Comparison("HTTPS: a request through a client", "https", "82 bytes", QUICK_CLIENTS, has_tls=True),
)


class _Contender:
    """One client, with its costs in each run.

    Args:
        run: Makes the requests.
        server: Responds to them.
        comparison: The kind of requests.
        requests: Their number.
    """

    def __init__(self, run: Callable[[Workers], Cost], server: Server, comparison: _Comparison, requests: int) -> None:
        self._run, self._server, self._requests = run, server, requests
        url = server.tls_url if comparison.has_tls else server.url
        self._url = f"{url}/{'large' if comparison.is_large else 'weather'}"
        self._has_tls = comparison.has_tls
        self.cpu: list[float] = []
        self.peaks: list[int] = []
        self.counts: list[int] = []

    def seconds(self) -> float:
        """Wall seconds per request; stores the other numbers."""
        reset(self._server.url, CAPACITY)
        context = ssl.create_default_context(cadata=self._server.authority) if self._has_tls else None
        cost = self._run(Workers(self._url, self._requests, CAPACITY, context))
        count, peak = served(self._server.url)
        assert count == self._requests + 2 * CAPACITY, "the server counted a different number of requests"
        self.cpu.append(cost.cpu)
        self.peaks.append(peak)
        self.counts.append(count)
        return cost.seconds


def http(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Requests per second and CPU time per request at a capacity of 100, alternating in one process."""
    with serving() as server:
        return [_compared(comparison, server, quick=quick, on_step=on_step) for comparison in COMPARISONS]


def _compared(comparison: _Comparison, server: Server, *, quick: bool, on_step: Callable[[], object]) -> Section:
    requests, rounds = comparison.requests(quick=quick), 3 if quick else 11
    contenders = {}
    for name in comparison.clients:
        package, run, fewer = CLIENTS[name]
        if is_installed(package):
            contenders[name] = _Contender(run, server, comparison, requests // fewer)
    walls = measure({name: each.seconds for name, each in contenders.items()}, rounds, on_step)
    cpus = Rounds({name: each.cpu[1:] for name, each in contenders.items()})
    section = Section(
        comparison.title,
        f"capacity {CAPACITY}, as many workers, one client, keep-alive, {comparison.body} of JSON; the server runs in "
        f"its own process. Median of {rounds} alternating rounds of up to {requests:,} requests. Ratios are to the "
        "first line in the same round, with their quartiles. The server counts the peak in flight and the requests per "
        "round",
        dict(FORMATS),
        name=comparison.name,
    )
    section.lines.extend(_line(name, contenders, walls, cpus) for name in comparison.clients)
    return section


def _line(name: str, contenders: dict[str, _Contender], walls: Rounds, cpus: Rounds) -> Line:
    if name not in contenders:
        return Line(name, {}, note=NOT_INSTALLED)
    (low, high), (cpu_low, cpu_high) = walls.spread(name), cpus.spread(name)
    values = {
        "requests/s": 1 / walls.median(name),
        "ratio": walls.ratio(name),
        "from": low,
        "to": high,
        "μs CPU": cpus.median(name) * 1e6,
        "CPU ratio": cpus.ratio(name),
        "CPU from": cpu_low,
        "CPU to": cpu_high,
        "requests": max(contenders[name].counts),
    }
    return Line(name, values, min(contenders[name].peaks))
