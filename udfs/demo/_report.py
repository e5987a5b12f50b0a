"""The report that the demo prints when it has finished."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from ._run import Done

__all__ = ["comparison", "delays", "summary"]

BAR_CELLS = 20


def delays(console: Console, rows: list[Any]) -> None:
    """Print the departure delay by weather as a table with bars."""
    table = Table(title="Departure delay by the weather at the origin", title_justify="left")
    table.add_column("weather")
    for name in ("flights", "mean delay", "over 30 min"):
        table.add_column(name, justify="right")
    table.add_column("")
    longest = max((row[2] for row in rows), default=1.0)
    for weather, flights, delay, late in rows:
        bar = "█" * max(0, round(BAR_CELLS * delay / longest))
        table.add_row(weather, f"{flights:,}", f"{delay:.1f} min", f"{late:.0%}", f"[cyan]{bar}[/]")
    console.print(table)


def summary(console: Console, done: Done[Any], *, rows: int, lookups: int, errors: int, slots: int) -> None:
    """Print how many requests the run made and how fast it was.

    Args:
        console: The console to print to.
        done: The run.
        rows: Enriched flights.
        lookups: Lookups that the flights need: the weather of each, and the aircraft of those with a tail number.
        errors: Flights whose lookups failed after all retries.
        slots: The capacity of all tasks together.
    """
    stats, seconds = done.service, done.seconds
    first = stats.requests - stats.repeats_after_failure
    rate, limit = stats.requests / seconds, slots / max(stats.mean_seconds, 1e-9)
    latency = f"{stats.mean_seconds * 1000:.0f} ms"
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column(justify="right")
    grid.add_column(style="dim")
    for label, number, explanation in (
        (
            "flights",
            f"{rows:,}",
            f"enriched in {seconds:.1f} s, {rows / seconds:,.0f}/s, start of the workers included",
        ),
        ("requests", f"{stats.requests:,}", f"peak {stats.peak_in_flight} at once, {stats.connections:,} connections"),
        ("saved", f"{lookups - first:,}", f"of {lookups:,} lookups, because equal lookups share one request"),
        ("retries", f"{stats.repeats_after_failure:,}", f"after {stats.failed:,} responses with status 500"),
        ("misses", f"{stats.missing:,}", "responses with status 404: no such observation or aircraft"),
        ("errors", f"{errors:,}", "flights whose lookups failed after all retries"),
        ("throughput", f"{rate:,.0f}/s", f"requests, {rate / limit:.0%} of the limit by Little's law"),
        ("limit", f"{limit:,.0f}/s", f"{slots} slots / {latency} mean latency"),
    ):
        grid.add_row(label, number, explanation)
    console.print(grid)


def comparison(console: Console, contenders: dict[str, Done[Any]], rows: int) -> None:
    """Print the runs of both contenders, the code by hand first."""
    title = f"The same {rows:,} flights without a cache, in workers that were already running"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in ("requests", "seconds", "requests/s", "flights/s"):
        table.add_column(name, justify="right")
    for name, done in contenders.items():
        requests, seconds = done.service.requests, done.seconds
        table.add_row(name, f"{requests:,}", f"{seconds:.1f}", f"{requests / seconds:,.0f}", f"{rows / seconds:,.0f}")
    console.print(table)
    by_hand, operator = (done.seconds for done in contenders.values())
    console.print(
        f"This operator was {by_hand / operator:.1f} times as fast as the code written by hand. Sharing and caching "
        'save further requests: see "saved".'
    )
