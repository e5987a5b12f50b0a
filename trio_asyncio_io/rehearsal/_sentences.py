"""The assumptions of a forecast, in sentences."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import exp, inf

from .._core.options import Options
from .._values.describe import amount, duration, plural
from ..gates import Budget, RateLimit
from ._row import ForecastRow
from ._sample import Sample
from ._service import Service

__all__ = ["assumptions"]

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
