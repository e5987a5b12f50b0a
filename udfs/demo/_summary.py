"""The lines and the table that the demo prints at the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from rich.console import Console
from rich.table import Table

BAR_CELLS = 20


def print_calls(console: Console, calls: Mapping[str, float], requests: Mapping[str, int], seconds: float) -> None:
    """Print how many requests the run needed, and what happened to those that the service failed.

    Args:
        console: The console to print to.
        calls: The metrics of the operator, as in `udfs.summary`.
        requests: What the service counted, as in its route `/stats`.
        seconds: Duration of the run.
    """
    counted = Counter(requests)
    rows, sent = int(calls["rows"]), counted["requests"]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    grid.add_column(justify="right")
    grid.add_column()
    for label, number, explanation in (
        ("flights", rows, f"in {seconds:.1f} s, with reading them and starting Spark's workers"),
        ("requests", sent, f"{sent / rows:.2f} for each flight: the cache had the others"),
        ("slow", counted["slow"], "responses took 0.5 s or longer"),
        ("not found", counted["404"], "responses: no such observation or aircraft"),
        ("errors", counted["500"], "responses with status 500"),
        ("retried", int(calls["retried"]), "calls that had waited for one of these errors"),
        ("failed", int(calls["failed"] + calls["timed_out"]), "flights, after all retries: see their column `error`"),
    ):
        grid.add_row(label, f"{number:,}", explanation)
    console.print(grid)
    console.print()


def print_delays(console: Console, enriched: DataFrame) -> None:
    """Print the departure delay by weather.

    Fog and haze mean a visibility below 3 miles, windy means 20 miles per hour or more.
    """
    weather = F.expr("""case
        when temp is null and visib is null then 'no observation'
        when precip > 0 and temp <= 32 then 'snow, ice'
        when precip > 0 then 'rain'
        when visib < 3 then 'fog, haze'
        when wind_speed >= 20 then 'windy, dry'
        else 'calm, dry' end""").alias("weather")
    delays = (
        enriched.where("dep_delay is not null")
        .groupBy(weather)
        .agg(
            F.count("*").alias("flights"), F.avg("dep_delay").alias("delay"), F.expr("avg(int(dep_delay > 30)) as late")
        )
        .orderBy(F.desc("delay"))
        .collect()
    )
    table = Table(title="Departure delay by the weather at the origin", title_justify="left")
    table.add_column("weather")
    for name in ("flights", "mean delay", "over 30 min"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in delays:
        bar = "█" * max(0, round(BAR_CELLS * row.delay / delays[0].delay))
        table.add_row(row.weather, f"{row.flights:,}", f"{row.delay:.1f} min", f"{row.late:.0%}", f"[cyan]{bar}[/]")
    console.print()
    console.print(table)
    console.print()
