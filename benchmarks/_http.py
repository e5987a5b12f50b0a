"""Cost of an HTTP request through `udfs.http.client` and other clients, on loopback."""

from __future__ import annotations

from collections.abc import Callable

from ._http_clients import CLIENTS, Cost, is_installed
from ._http_server import reset, served, serving
from ._report import Line, Section
from ._rounds import Rounds, measure

__all__ = ["http"]

CAPACITY = 100


class _Contender:
    """One client, with its costs in each run."""

    def __init__(self, run: Callable[[str, int, int], Cost], url: str, requests: int) -> None:
        self._run, self._url, self._requests = run, url, requests
        self.cpu: list[float] = []
        self.peaks: list[int] = []
        self.counts: list[int] = []

    def seconds(self) -> float:
        """Wall seconds per request; stores the other numbers."""
        reset(self._url, CAPACITY)
        cost = self._run(self._url, self._requests, CAPACITY)
        count, peak = served(self._url)
        assert count == self._requests + 2 * CAPACITY, "the server counted a different number of requests"
        self.cpu.append(cost.cpu)
        self.peaks.append(peak)
        self.counts.append(count)
        return cost.seconds


def http(*, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Requests per second and CPU time per request at a capacity of 100, alternating in one process."""
    requests, rounds = (1_000, 3) if quick else (6_000, 11)
    there = {name: each for name, each in CLIENTS.items() if is_installed(each[0])}
    with serving() as url:
        contenders = {name: _Contender(run, url, requests // fewer) for name, (_, run, fewer) in there.items()}
        walls = measure({name: each.seconds for name, each in contenders.items()}, rounds, on_step)
    cpus = Rounds({name: each.cpu[1:] for name, each in contenders.items()})
    section = Section(
        "HTTP: a request through a client",
        f"capacity {CAPACITY}, as many workers, one client, keep-alive, 82 bytes of JSON; the server runs in its "
        f"own process. Median of {rounds} alternating rounds of up to {requests:,} requests. Ratios are to the first "
        "line in the same round, with their quartiles. The server counts the peak in flight and the requests per "
        "round",
        {
            "requests/s": "{:,.0f}",
            "ratio": "{:.2f}",
            "from": "{:.2f}",
            "to": "{:.2f}",
            "μs CPU": "{:.0f}",
            "CPU ratio": "{:.2f}",
            "CPU from": "{:.2f}",
            "CPU to": "{:.2f}",
            "requests": "{:,.0f}",
        },
        name="http",
    )
    section.lines.extend(_line(name, contenders, walls, cpus) for name in CLIENTS)
    return [section]


def _line(name: str, contenders: dict[str, _Contender], walls: Rounds, cpus: Rounds) -> Line:
    if name not in contenders:
        return Line(name, {}, note="not installed: run .ci/just bench-setup")
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
