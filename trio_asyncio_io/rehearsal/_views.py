"""A row of a forecast, and the views of all rows: a table of text, a drawing, and the assumptions in sentences."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, inf
from textwrap import wrap

from .._core.options import Options
from .._values.describe import amount, duration, plural
from .._watch.charts import Plot, document, style_sheet
from ..gates import Budget, RateLimit
from ._cap import Cap
from ._sample import Sample
from ._service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastRow:
    """The forecast for one capacity.

    Attributes:
        capacity: The capacity, as in `ordered_wait`.
        seconds: The length of the run.
        low, high: The bounds of the 90 % interval of `seconds`.
        p50, p99: The median and the 99th percentile of a record's delay, from its first call to its output, in seconds.
        calls: All calls, retries included.
        refused: Calls that the service refuses, such as with a status 429.
        retried: Attempts after the first.
        timed_out: Records that time out.
        failed: Records whose last call fails.
        weight: The sum of the weights of all calls, such as tokens or money, counted as by a `Budget`; 0 for a sample
            without weights.
        is_tested: Whether the sample has reached a load as high as the capacity. Otherwise the row is a guess.
        simulated: The number of simulated records, from which the counts of the whole run are extrapolated.
        intervals: The 90 % interval of each number, by the name of its attribute.
    """

    capacity: int
    seconds: float
    low: float
    high: float
    p50: float
    p99: float
    calls: float
    refused: float
    retried: float
    timed_out: float
    failed: float
    weight: float
    is_tested: bool
    simulated: int
    intervals: Mapping[str, tuple[float, float]] = field(repr=False, hash=False)


# As a table

WIDTH = 80

# An interval whose bounds differ by more than this factor has no number in the middle, if the limit is not known
WIDE = 2.0
TIMES = ("p50", "p99")
OPTIONAL = ("weight", "refused", "retried", "timed_out", "failed")  # left out if they are 0 in all rows
LEFT_OUT = ("p50", "p99", "90 %")  # columns of a table that is too wide, the first one first
UNKNOWN = "?"
MILLION, THOUSAND, LONG = 1e6, 1e3, 1e5


def text_of(
    rows: Sequence[ForecastRow], elements: int, best: ForecastRow | None, assumptions: Sequence[str], *, is_known: bool
) -> str:
    """The rows of a `Forecast`, its best one and its assumptions, at most 80 columns wide."""
    columns = _columns(rows, best, is_known=is_known)
    widths = {name: max(map(len, [name, *cells])) for name, cells in columns.items()}
    for name in LEFT_OUT:
        if sum(widths.values()) + 2 * (len(widths) - 1) > WIDTH:
            del widths[name]
    table = zip(*([name, *columns[name]] for name in widths), strict=True)
    lines = ["  ".join(map(str.rjust, line, widths.values())) for line in table]
    legend = _legend(elements, best, is_tested=all(row.is_tested for row in rows))
    if any(UNKNOWN in cells for cells in columns.values()):
        legend.append(f"{UNKNOWN} The sample cannot tell this number.")
    paragraphs = [*legend, *(f"- {each}" for each in assumptions)]
    return "\n".join([*lines, "", *(line for each in paragraphs for line in wrap(each, WIDTH, subsequent_indent="  "))])


def _columns(rows: Sequence[ForecastRow], best: ForecastRow | None, *, is_known: bool) -> dict[str, list[str]]:
    """The heads of the columns, and their cells."""

    def cells(name: str, unit: Callable[[float], str]) -> list[str]:
        bounds = (row.intervals[name] for row in rows)
        is_shown = [is_known or high <= WIDE * low for low, high in bounds]
        return [unit(getattr(row, name)) if shown else UNKNOWN for row, shown in zip(rows, is_shown, strict=True)]

    marks = ["> " if row is best else "" if row.is_tested else "* " for row in rows]
    counts = ["calls", *(name for name in OPTIONAL if any(getattr(row, name) for row in rows))]
    return {
        "capacity": [f"{mark}{row.capacity}" for mark, row in zip(marks, rows, strict=True)],
        "time": cells("seconds", duration),
        "90 %": [f"{duration(row.low)} to {duration(row.high)}" for row in rows],
        **{name: cells(name, duration) for name in TIMES},
        **{name.replace("_", " "): cells(name, _short) for name in counts},
    }


def _legend(elements: int, best: ForecastRow | None, *, is_tested: bool) -> list[str]:
    times = "p50 and p99: from a record's first call to its output."
    legend = [f"{plural(elements, 'element')}. Intervals of 90 %. {times}"]
    if best is not None:
        legend.append(f"> Take capacity={best.capacity}: the smallest tested one that is about as fast as any.")
    if not is_tested:
        legend.append("* The sample has not reached this load: a guess.")
    return legend


def _short(number: float) -> str:
    """A number with at most six characters or so."""
    if number >= LONG:
        scale, unit = (MILLION, "M") if number >= MILLION else (THOUSAND, "k")
        return f"{amount(float(f'{number / scale:.3g}'))}{unit}"
    return amount(float(f"{number:.5g}"))


# As a drawing, in pixels

LEFT, RIGHT, PANEL = 70, 20, 224
BAR = 0.45
STYLE = style_sheet(
    ".forecast",
    """\
.forecast svg{overflow:visible}
.forecast text{font:13px system-ui,sans-serif;fill:var(--fg)}
.forecast .grid{stroke:var(--grid)}
.forecast .bar{fill:var(--run)}
.forecast .guess{fill:none;stroke:var(--run);stroke-dasharray:4 3}
.forecast .column{fill:transparent}
.forecast .interval{stroke:var(--fg);stroke-width:1.5}
""",
)


def drawing_of(rows: Sequence[ForecastRow], elements: int) -> str:
    """Two panels over the capacity: the time, and the weight or the calls. Bars of untested capacities are hollow."""
    width = max(480, LEFT + RIGHT + 90 * len(rows))
    cost = "weight" if any(row.weight for row in rows) else "calls"
    count = plural(elements, "element")
    body = "".join(
        f'<text x="{LEFT}" y="{top + 20}">{heading}</text>'
        f'<svg x="{LEFT}" y="{top + 8}" width="{width - LEFT - RIGHT}">{_panel(rows, name, heading)}</svg>'
        for name, heading, top in (
            ("seconds", f"{count}: time by capacity, with intervals of 90 %", 0),
            (cost, f"{cost.capitalize()} by capacity", PANEL),
        )
    )
    description = "; ".join(f"capacity {row.capacity}: {_described(row, 'seconds')}" for row in rows)
    title = f"Forecast for {count}"
    return document("forecast", width, 2 * PANEL, title=title, description=description, style=STYLE, body=body)


def _unit_of(name: str) -> Callable[[float], str]:
    return duration if name == "seconds" else _short


def _described(row: ForecastRow, name: str) -> str:
    unit, (low, high) = _unit_of(name), row.intervals[name]
    return f"{unit(getattr(row, name))}, from {unit(low)} to {unit(high)}"


def _panel(rows: Sequence[ForecastRow], name: str, title: str) -> str:
    plot = Plot(title)
    plot.add_levels(max(row.intervals[name][1] for row in rows), _unit_of(name))
    for position, row in enumerate(rows):
        middle, half = (position + 0.5) / len(rows), BAR / len(rows) / 2
        label, look = f"capacity {row.capacity}: {_described(row, name)}", "bar" if row.is_tested else "guess"
        plot.bar(middle - half, 2 * half, getattr(row, name), label, look)
        plot.interval(middle, *row.intervals[name])
        plot.tick(middle, str(row.capacity))
    return plot.svg()


# In sentences

Z90 = 1.64  # standard deviations of an interval of 90 %
RULE_OF_THREE = 3  # with a share of 3 / n, a kind of call is missing in 5 % of samples of n
HEAVY_SHAPE = 0.5
SAFE = 0.99  # of the rate, for a gate
FEW_SLOW = 10
FASTER = 2.0  # the calls per second of a run, over those of the sample, above which the sample has not shown much
BUSY_PROCESS = 2_000  # calls per second, above which the time of the operator itself is not negligible


def assumptions(
    sample: Sample, service: Service, rows: Sequence[ForecastRow], options: Options, elements: int
) -> tuple[str, ...]:
    """The assumptions of a forecast: the limits in the sample, and those that it cannot show."""
    made = len(sample.calls)
    hidden = f"larger loads, limits that its {plural(made, 'call')} stay within (such as a number per minute or day)"
    said = [
        f"The sample is {sample}.",
        f"It cannot show {hidden}, drift, and kinds of calls with a share below {min(1.0, RULE_OF_THREE / made):.1%}.",
        *_on_limits(sample, service, rows, options),
        *_on_latency(sample, service),
        *_on_budgets(options, rows[0], elements),
    ]
    if not service.is_independent:
        said.append("The service is assumed to work on calls in the order in which they arrive.")
    if any(row.failed + row.timed_out for row in rows):
        said.append('Records without a result do not end the forecast run: on_error="raise" would.')
    if any(elements / row.seconds > BUSY_PROCESS for row in rows if row.seconds):
        said.append(
            f"More than {BUSY_PROCESS:,} calls per second also need the time of the CPU, which is not in the forecast."
        )
    if service.slower != 1:
        said.append(f"What if: all calls take {service.slower:g} times as long.")
    share, seconds = service.unseen
    if share:
        said.append(f"What if: {share:.3g} of the calls take {duration(seconds)}.")
    return tuple(said)


def _on_limits(sample: Sample, service: Service, rows: Sequence[ForecastRow], options: Options) -> Iterator[str]:
    if service.cap is None and service.refused:
        yield (
            f"The service refused {plural(len(service.refused), 'call')}, and the sample cannot tell why: too few are "
            "refused, or no limit on the rate explains which. The run is assumed to have the same share of them. "
            "Record more elements for advice."
        )
    elif service.cap is not None and not service.is_known:
        slowest, fastest = (_rounded(service.caps[end].rate) for end in (0, -1))
        rates = f"between {slowest} and {fastest}" if service.is_bounded else f"at least {slowest}"
        yield (
            f"The service refuses calls, and the sample cannot tell from which rate on: {rates} calls per second. The "
            "intervals cover all of these rates. Record more elements for advice."
        )
    elif service.cap is not None:
        yield _on_cap(service.cap, has_rate=any(isinstance(gate, RateLimit) for gate in options.gates))
    elif service.servers < inf:
        low, high = (service.servers * exp(sign * Z90 * service.servers_error) for sign in (-1, 1))
        yield f"More than {service.servers} calls at once ({low:.0f} to {high:.0f}) wait inside the service."
    else:
        yield "No limit of the service was seen up to this load."
        starts = [call.start for call in sample.calls]
        most = max(bisect_left(starts, now + 1) - position for position, now in enumerate(starts))
        quickest = max((row.calls / row.seconds for row in rows if row.seconds and row.is_tested), default=0.0)
        if quickest > FASTER * most:
            yield (
                f"The run makes up to {_rounded(quickest)} calls per second, and the sample made at most {most:,} in "
                "one second: it cannot show a limit between them."
            )


def _on_cap(cap: Cap, *, has_rate: bool) -> str:
    said = (
        f"The service admits {_rounded(cap.rate)} calls per second, and {_rounded(cap.burst)} at once. It refuses the "
        "others."
    )
    if has_rate:
        return said
    return (
        f"{said} In a longer run, more refused records wait in the buffer, and more calls are refused than shown: "
        f"compare gate=RateLimit({SAFE * float(f'{cap.rate:.3g}'):.3g})."
    )


def _rounded(number: float) -> str:
    """A number with three digits."""
    return amount(float(f"{number:.3g}"))


def _on_latency(sample: Sample, service: Service) -> Iterator[str]:
    if service.tail is not None and service.tail.shape > HEAVY_SHAPE:
        yield (
            "The longest calls decide, and may take far longer than any in the sample: use a lower timeout, or a "
            "retry strategy with attempt_timeout."
        )
    if 0 < service.apart < FEW_SLOW:
        yield (
            f"{plural(service.apart, 'call')} of a slow kind {'was' if service.apart == 1 else 'were'} seen: the time "
            "is as uncertain as this number."
        )
    cut = sum(call.outcome == "cut" for call in sample.calls)
    if cut:
        yield f"{plural(cut, 'call')} exceeded a timeout, and so do as many in the run."


def _on_budgets(options: Options, row: ForecastRow, elements: int) -> Iterator[str]:
    for budget in (gate for gate in options.gates if isinstance(gate, Budget)):
        needed = row.calls if budget.weight is None else row.weight
        if needed > budget.left:
            share = budget.left / needed
            yield (
                f"The budget has {amount(budget.left)} left, and the run needs {amount(needed)}: about "
                f"{elements * share:,.0f} of the elements ({share:.0%}). The others fail without a call."
            )
        else:
            yield f"The run needs {amount(needed)} of the {amount(budget.left)} left in the budget."
