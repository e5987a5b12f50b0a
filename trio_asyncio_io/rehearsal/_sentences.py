"""The sentences of a forecast: its assumptions, and how a run differs from it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import exp, inf

from .._account.statistics import Statistics
from .._core.options import Options
from .._values.describe import amount, duration, plural
from ..gates import Budget, RateLimit
from ._row import ForecastRow
from ._sample import Sample
from ._service import Service

__all__ = ["assumptions", "comparison"]

Z90 = 1.64  # standard deviations of an interval of 90 %
RULE_OF_THREE = 3  # with a share of 3 / n, a kind of call is missing in 5 % of samples of n
HEAVY_SHAPE = 0.5
SAFE = 0.99  # of the rate, for a gate
FEW_SLOW = 10
FASTER = 2.0  # the calls per second of a run, over those of the sample, above which the sample has not shown much
BUSY_PROCESS = 2_000  # calls per second, above which the time of the operator itself is not negligible
# Relative differences that are named: of times, of counts, and of counts as a share of all records
TIMES, COUNTS, RECORDS = 0.05, 0.1, 0.01


def assumptions(
    sample: Sample, service: Service, rows: Sequence[ForecastRow], options: Options, elements: int
) -> tuple[str, ...]:
    """The assumptions of a forecast: the limits in the sample, and those that it cannot show."""
    made = len(sample.calls)
    hidden = f"larger loads, limits that its {plural(made, 'call')} stay within (such as a number per minute or day)"
    said = [
        f"The sample is {sample}.",
        f"It cannot show {hidden}, drift, and kinds of calls with a share below {RULE_OF_THREE / made:.1%}.",
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
    if service.slower != 1 or service.unseen[0]:
        share, seconds = service.unseen
        what = f"all calls take {service.slower:g} times as long" if service.slower != 1 else ""
        if share:
            what += f"{' and ' if what else ''}{share:.3g} of the calls take {duration(seconds)}"
        said.append(f"What if: {what}.")
    return tuple(said)


def _on_limits(sample: Sample, service: Service, rows: Sequence[ForecastRow], options: Options) -> list[str]:
    if service.cap is None and service.refused:
        sentence = f"The service refused {plural(len(service.refused), 'call')}, and the sample cannot tell why: "
        sentence += "too few are refused, or no limit on the rate explains which. "
        return [f"{sentence}The run is assumed to have the same share of them. Record more elements for advice."]
    if service.cap is not None and not service.is_known:
        slowest, fastest = (amount(float(f"{service.caps[end].rate:.3g}")) for end in (0, -1))
        rates = f"between {slowest} and {fastest}" if service.is_bounded else f"at least {slowest}"
        sentence = (
            f"The service refuses calls, and the sample cannot tell from which rate on: {rates} calls per second."
        )
        return [f"{sentence} The intervals cover all of these rates. Record more elements for advice."]
    if service.cap is not None:
        rate, burst = (float(f"{each:.3g}") for each in (service.cap.rate, service.cap.burst))
        sentence = f"The service admits {amount(rate)} calls per second, and {amount(burst)} at once. "
        sentence += "It refuses the others."
        if not any(isinstance(gate, RateLimit) for gate in options.gates):
            sentence += (
                " In a longer run, more refused records wait in the buffer, and more calls are refused than shown: "
                f"compare gate=RateLimit({SAFE * rate:.3g})."
            )
        return [sentence]
    if service.servers < inf:
        low, high = (service.servers * exp(sign * Z90 * service.servers_error) for sign in (-1, 1))
        return [f"More than {service.servers} calls at once ({low:.0f} to {high:.0f}) wait inside the service."]
    said = ["No limit of the service was seen up to this load."]
    starts = [call.start for call in sample.calls]
    most = max(bisect_left(starts, now + 1) - position for position, now in enumerate(starts))
    quickest = max((row.calls / row.seconds for row in rows if row.seconds and row.is_tested), default=0.0)
    if quickest > FASTER * most:
        said.append(
            f"The run makes up to {amount(float(f'{quickest:.3g}'))} calls per second, and the sample made at most "
            f"{most:,} in one second: it cannot show a limit between them."
        )
    return said


def _on_latency(sample: Sample, service: Service) -> list[str]:
    said = []
    if service.tail is not None and service.tail.shape > HEAVY_SHAPE:
        said.append(
            "The longest calls decide, and may take far longer than any in the sample: use a lower timeout, or a "
            "retry strategy with attempt_timeout."
        )
    if 0 < service.apart < FEW_SLOW:
        said.append(
            f"{plural(service.apart, 'call')} of a slow kind {'was' if service.apart == 1 else 'were'} seen: the time "
            "is as uncertain as this number."
        )
    cut = sum(call.outcome == "cut" for call in sample.calls)
    if cut:
        said.append(f"{plural(cut, 'call')} exceeded a timeout, and so do as many in the run.")
    return said


def _on_budgets(options: Options, row: ForecastRow, elements: int) -> list[str]:
    said = []
    for budget in (gate for gate in options.gates if isinstance(gate, Budget)):
        needed = row.calls if budget.weight is None else row.weight
        if needed > budget.left:
            share = budget.left / needed
            said.append(
                f"The budget has {amount(budget.left)} left, and the run needs {amount(needed)}: about "
                f"{elements * share:,.0f} of the elements ({share:.0%}). The others fail without a call."
            )
        else:
            said.append(f"The run needs {amount(needed)} of the {amount(budget.left)} left in the budget.")
    return said


def comparison(row: ForecastRow, elements: int, statistics: Statistics, seconds: float) -> list[str]:
    """The forecast, the run, and their differences.

    Raises:
        ValueError: The run has ended no record.
    """
    size = statistics.group_size or 1.0  # an element of the forecast is a group
    ended = round((statistics.completed + statistics.failed + statistics.timed_out) / size)
    if not ended:
        raise ValueError("statistics must be those of a run, got some without an ended record")
    scale = ended / elements
    forecast, low, high = (scale * each for each in (row.seconds, row.low, row.high))
    inside = "inside" if low <= seconds <= high else "outside"
    interval = f"with 90 % from {duration(low)} to {duration(high)}"
    said = [
        f"Forecast for {plural(ended, 'record' if size == 1 else 'group')}: {duration(forecast)}, {interval}.",
        f"The run took {duration(seconds)} ({_change(seconds, forecast)}), {inside} the interval.",
    ]
    latency = statistics.latency_seconds / size / ended
    reasons = []
    if _differs(latency, row.latency):
        reasons.append(
            f"calls took {duration(latency)} on average, in the forecast {duration(row.latency)} "
            f"({_change(latency, row.latency)})"
        )
    in_flight, planned = latency * ended / seconds, row.latency * elements / row.seconds if row.seconds else 0.0
    if _differs(in_flight, planned):
        reasons.append(
            f"{amount(in_flight)} records ran or backed off on average, in the forecast {amount(planned)}"
            + (": the source, the consumer or the CPU was slower; see explain()" if in_flight < planned else "")
        )
    for name in ("retried", "failed", "timed_out"):
        count, expected = round(getattr(statistics, name) / size), scale * getattr(row, name)
        if abs(count - expected) > max(RECORDS * ended, COUNTS * expected):
            reasons.append(f"{name.replace('_', ' ')}: {count:,}, in the forecast {expected:,.0f}")
    if reasons:
        said.append(f"What differs: {'; '.join(reasons)}.")
    return said


def _differs(actual: float, expected: float) -> bool:
    return abs(actual - expected) > TIMES * expected


def _change(actual: float, expected: float) -> str:
    return f"{actual / expected - 1:+.0%}" if expected else "more"
