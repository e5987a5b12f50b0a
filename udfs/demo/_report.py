"""The report: what the demo prints at its end."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from ._run import Done

__all__ = ["comparison", "delays", "summary"]

BAR = 20


def delays(console: Console, rows: list[Any]) -> None:
    """Delay by weather, as a table with bars."""
    table = Table(title="Departure delay by the weather at the origin", title_justify="left")
    table.add_column("weather")
    for name in ("flights", "mean delay", "over 30 min"):
        table.add_column(name, justify="right")
    table.add_column("")
    longest = max((row[2] for row in rows), default=1.0)
    for weather, flights, delay, late in rows:
        bar = "█" * max(0, round(BAR * delay / longest))
        table.add_row(weather, f"{flights:,}", f"{delay:.1f} min", f"{late:.0%}", f"[cyan]{bar}[/]")
    console.print(table)


def summary(console: Console, done: Done[Any], *, rows: int, lookups: int, errors: int, in_flight: int) -> None:
    """What the run cost, in the words of the README.

    Args:
        console: Where it goes.
        done: The run.
        rows: Flights enriched.
        lookups: Questions that the flights had: one for the weather, and one for the aircraft if there is one.
        errors: Flights whose lookup failed in the end.
        in_flight: Calls that may be in flight at once, over all tasks: the L of Little's law.
    """
    seen, seconds = done.service, done.seconds
    first = seen.requests - seen.repeats_after_failure
    rate, limit = seen.requests / seconds, in_flight / max(seen.mean_seconds, 1e-9)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column(justify="right")
    grid.add_column(style="dim")
    at_once = f"at most {seen.peak_in_flight} at once, on {seen.connections:,} connections"
    grid.add_row("flights", f"{rows:,}", f"in {seconds:.1f} s, {rows / seconds:,.0f}/s, start of the workers included")
    grid.add_row("requests", f"{seen.requests:,}", at_once)
    grid.add_row("saved", f"{lookups - first:,}", f"of {lookups:,} lookups, by sharing and caching equal ones")
    grid.add_row("retries", f"{seen.repeats_after_failure:,}", f"after {seen.failed:,} answers with status 500")
    grid.add_row("misses", f"{seen.missing:,}", "answers with status 404: no such observation or aircraft")
    grid.add_row("errors", f"{errors:,}", "flights whose lookup failed for good")
    grid.add_row("throughput", f"{rate:,.0f}/s", f"requests, {rate / limit:.0%} of what Little's law allows:")
    grid.add_row("", f"{limit:,.0f}/s", f"{in_flight} in flight / {seen.mean_seconds * 1000:.0f} ms mean latency")
    console.print(grid)


def comparison(console: Console, sides: dict[str, Done[Any]], rows: int) -> None:
    """The same flights by hand and by the operator, in this order, without a cache on either side."""
    title = f"The same {rows:,} flights without a cache, in workers that run already"
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for name in ("requests", "seconds", "requests/s", "flights/s"):
        table.add_column(name, justify="right")
    for name, done in sides.items():
        requests, seconds = done.service.requests, done.seconds
        table.add_row(name, f"{requests:,}", f"{seconds:.1f}", f"{requests / seconds:,.0f}", f"{rows / seconds:,.0f}")
    console.print(table)
    by_hand, ours = (done.seconds for done in sides.values())
    console.print(
        f"This operator is {by_hand / ours:.1f} times as fast as the code by hand. What sharing and caching save comes "
        'on top: see "saved" above.'
    )
