"""Targets for the cost of the project, and whether a report meets them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ._report import Report

__all__ = ["TARGETS", "Target"]

Figure = Callable[[Report], "float | None"]


@dataclass(frozen=True, slots=True)
class Target:
    """A bound for one number of the report.

    Attributes:
        label: Its description.
        figure: Returns the measured number, or None.
        bound: The bound.
        is_maximum: Whether the bound is an upper one. Otherwise it is a lower one.
        form: The format of both numbers.
        reason: Why it may be missed; shown if it is.
    """

    label: str
    figure: Figure
    bound: float
    is_maximum: bool = False
    form: str = "{:.1f} x"
    reason: str = ""

    def verdict(self, report: Report) -> str:
        """Whether the target is met."""
        found = self.figure(report)
        if found is None:
            return "not measured"
        if found <= self.bound if self.is_maximum else found >= self.bound:
            return "met"
        return f"**not met**: {self.reason}" if self.reason else "**not met**"

    def cells(self, report: Report) -> list[str]:
        """The target's line in a table."""
        found = self.figure(report)
        bound = f"{'≤' if self.is_maximum else '≥'} {self.form.format(self.bound)}"
        return [self.label, bound, "" if found is None else self.form.format(found), self.verdict(report)]


def _value(section: str, line: str, column: str) -> Figure:
    def figure(report: Report) -> float | None:
        table = report.section(section)
        found = table and table.line(line)
        return found.values.get(column) if found else None

    return figure


def _least(*figures: Figure) -> Figure:
    def figure(report: Report) -> float | None:
        found = [each(report) for each in figures]
        return None if None in found else min(number for number in found if number is not None)

    return figure


def _quotient(one: Figure, other: Figure) -> Figure:
    def figure(report: Report) -> float | None:
        over, under = one(report), other(report)
        return over / under if over is not None and under else None

    return figure


def _range(section: str, column: str) -> Figure:
    """The largest number of a column divided by the smallest."""

    def figure(report: Report) -> float | None:
        table = report.section(section)
        found = [line.values.get(column) for line in table.lines] if table else []
        numbers = [number for number in found if number]
        return max(numbers) / min(numbers) if numbers else None

    return figure


def _throughput_after_the_operator(report: Report) -> float | None:
    """The cost of a plain UDF plus that of the operator, divided by the cost of our UDF."""
    plain, operator, ours = (
        _value("cost", name, "μs/row")(report)
        for name in ("iterator pandas UDF", "the operator alone", "async_pandas_udf")
    )
    return (plain + operator) / ours if plain and operator and ours else None


def _later_than_pandas(function: str) -> Figure:
    first_row, of_pandas = (_value("start-up", name, "milliseconds") for name in (function, "iterator pandas UDF"))

    def figure(report: Report) -> float | None:
        ours, theirs = first_row(report), of_pandas(report)
        return ours - theirs if ours is not None and theirs is not None else None

    return figure


def _beyond_buffer(report: Report) -> float | None:
    table = report.section("scale of memory")
    excess = [(line.values["held"] or 0.0) - float(line.name.replace(",", "")) for line in table.lines] if table else []
    return max(excess, default=None)


def _of_perfect(function: str) -> Figure:
    return _least(*(_value(f"gain {size}", function, "of perfect") for size in (100, 1_000, 10_000)))


def _times_ours(peer: str) -> Figure:
    return _least(*(_value("overhead", peer, f"of {mode}") for mode in ("ordered", "unordered")))


def _share(mode: str, capacity: int, bound: float) -> Target:
    label = f"{mode}, capacity {capacity:,}: share of Little's law (virtual clock)"
    return Target(label, _value(f"throughput {capacity}", mode, "share"), bound, form="{:.1%}")


def _real_share(mode: str, capacity: int, bound: float) -> Target:
    label = f"{mode}, capacity {capacity:,}: share of Little's law (real clock)"
    reason = "the bare worker loop shows the limit of this machine's clock and processor"
    return Target(label, _value(f"throughput {capacity}", mode, "real share"), bound, form="{:.1%}", reason=reason)


def _share_of_bare(mode: str, capacity: int, bound: float) -> Target:
    section, column = f"throughput {capacity}", "real/s"
    figure = _quotient(_value(section, mode, column), _value(section, "bare worker loop", column))
    label = f"{mode}, capacity {capacity:,}: share of the bare worker loop (real clock)"
    return Target(label, figure, bound, form="{:.1%}")


_ABOVE_TWO = "a stream of results needs more steps than a loop without one"


def _at_capacity(capacity: str, place: int) -> Target:
    """The most expensive of the modes that were measured, in this line of the table of capacities."""

    def figure(report: Report) -> float | None:
        table = report.section("scale of capacity")
        values = table.lines[place].values if table else {}
        found = [values.get(f"{mode}, ratio") for mode in ("ordered", "unordered", "keyed")]
        return max((number for number in found if number is not None), default=None)

    label = f"capacity {capacity}: cost of any mode relative to the bare worker loop"
    return Target(label, figure, 2.0, True, "{:.2f} x", _ABOVE_TWO)


TARGETS = (
    Target(
        "ordered: cost relative to the bare worker loop", _value("overhead", "ordered", "ratio"), 1.5, True, "{:.2f} x"
    ),
    Target(
        "unordered: cost relative to the bare worker loop",
        _value("overhead", "unordered", "ratio"),
        1.5,
        True,
        "{:.2f} x",
    ),
    Target("aiometer: cost relative to this operator", _times_ours("aiometer (no timeout, no order)"), 5.0),
    Target("aiostream: cost relative to this operator", _times_ours("aiostream (no timeout)"), 8.0),
    Target("asyncio by hand: cost relative to this operator", _times_ours("asyncio by hand"), 1.0, form="{:.2f} x"),
    Target(
        "PyFlink: cost relative to ordered (wall or CPU time, the smaller)",
        _value("engines", "PyFlink", "of ordered"),
        30.0,
    ),
    Target(
        "ordered: cost of a call that does not suspend, relative to one that does",
        _quotient(
            _value("overhead without a checkpoint", "ordered", "μs/element"),
            _value("overhead", "ordered", "μs/element"),
        ),
        1.0,
        True,
        "{:.2f} x",
    ),
    Target(
        "retry, error and timeout handlers, set but not used: cost relative to none",
        _value("overhead of options", "all three", "ratio"),
        1.05,
        True,
        "{:.2f} x",
        "a retry strategy is a coroutine around each call; options that are not set cost nothing",
    ),
    _share("unordered", 100, 0.97),
    _share("ordered", 100, 0.95),
    _share("unordered", 1_000, 0.97),
    _share("ordered", 1_000, 0.95),
    _real_share("unordered", 100, 0.97),
    _real_share("ordered", 100, 0.95),
    _real_share("unordered", 1_000, 0.97),
    _real_share("ordered", 1_000, 0.95),
    _share_of_bare("unordered", 100, 0.97),
    _share_of_bare("ordered", 100, 0.95),
    Target(
        "ordered: results per second relative to Flink's operator in Java, capacity 100",
        _quotient(
            _value("throughput 100", "ordered", "real/s"), _value("throughput 100", "Flink, in Java, ordered", "real/s")
        ),
        10.0,
    ),
    Target(
        "ordered: largest / smallest cost over all lengths",
        _range("scale of elements", "ordered, μs"),
        1.5,
        True,
        "{:.2f} x",
    ),
    Target(
        "ordered: largest / smallest cost over all capacities",
        _range("scale of capacity", "ordered, μs"),
        1.5,
        True,
        "{:.2f} x",
        "with a capacity of 1 each element needs a scheduler pass, in the bare loop, too; with 10,000 neither tasks "
        "nor elements fit the processor's caches",
    ),
    _at_capacity("1", 0),
    _at_capacity("10,000", -1),
    Target("records held beyond the buffer", _beyond_buffer, 1, True, "{:.0f}"),
    Target("cancelling 10,000 running calls", _value("cancellation", "ordered", "seconds"), 1.0, True, "{:.2f} s"),
    Target(
        "HTTP: httpx with its own pool, time relative to udfs.http.client",
        _value("http", "httpx, its own pool", "ratio"),
        5.0,
    ),
    Target(
        "HTTP: aiohttp on asyncio, time relative to udfs.http.client",
        _value("http", "aiohttp on asyncio", "ratio"),
        1.0,
        form="{:.2f} x",
    ),
    *(
        Target(
            f"{label}: aiohttp on asyncio, CPU time relative to udfs.http.client",
            _value(section, "aiohttp on asyncio", "CPU ratio"),
            bound,
            form="{:.2f} x",
        )
        for label, section, bound in (
            ("HTTP", "http", 1.2),
            ("HTTP, 100 kB", "http large", 1.0),
            ("HTTPS", "https", 1.0),
            ("HTTPS, 100 kB", "https large", 1.0),
        )
    ),
    Target(
        "HTTP: aiohttp on asyncio, CPU time relative to udfs.http_columns",
        _quotient(_value("http", "aiohttp on asyncio", "CPU ratio"), _value("http", "udfs.http_columns", "CPU ratio")),
        1.8,
        form="{:.2f} x",
    ),
    *(
        Target(
            f"Spark: {function}, share of perfect scheduling, smallest over all batch sizes",
            _of_perfect(function),
            bound,
            form="{:.1%}",
            reason="Spark's start of a job and the clock's resolution count, too: see the bare loop without Spark",
        )
        for function, bound in (("unordered_wait", 0.95), ("async_pandas_udf", 0.9))
    ),
    Target(
        "Spark: a gather per batch of 1,000 rows, time relative to unordered_wait",
        _quotient(
            _value("gain 1000", "asyncio.gather per batch", "seconds"), _value("gain 1000", "unordered_wait", "seconds")
        ),
        4.0,
        reason="perfect scheduling itself would reach 3.5 x with these latencies",
    ),
    Target(
        "Spark: identity UDF, rows per second relative to a plain UDF plus the operator",
        _throughput_after_the_operator,
        0.8,
        form="{:.0%}",
    ),
    *(
        Target(
            f"Spark: {function}, delay of the first row relative to a pandas UDF",
            _later_than_pandas(function),
            200,
            True,
            "{:.0f} ms",
        )
        for function in ("async_pandas_udf", "unordered_wait")
    ),
)
