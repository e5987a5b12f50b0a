"""The forecast: each setting simulated with the fitted service, and with others that the sample might have shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from math import ceil, exp, hypot, inf, log, sqrt
from random import Random
from statistics import fmean, median, stdev
from typing import Any, Literal, TypeAlias, get_args

from .._core.automatic import Auto
from .._core.gate import Gate, PerKey
from .._core.options import Options
from .._core.retry import RetryStrategy
from .._values.checks import check_int, check_number, check_seconds
from .._values.describe import describe, duration
from ._sample import Sample
from ._service import Service, fit, resampled
from ._simulation import SimulatedRun, gates_of, simulate
from ._views import ForecastRow, assumptions, drawing_of, text_of

# The number of resamples. An interval reaches from the smallest to the largest of them, so it holds one more resample
# in 18 of 20 cases. It holds the run less often, because the forecast has a random error, too
RESAMPLES = 19
# For a service with a known limit: the number of simulated runs, and half the width of the interval of 90 % for another
# run, in standard deviations: Student's t with 4 degrees of freedom, times sqrt(1 + 1/5)
CAPPED_RUNS, CAPPED_WIDTH = 5, 2.34
# In front of a limit, the model is off by about this share: calls that come back together respond to small differences
CAPPED_ERROR = 0.06
# The number of elements to simulate: at least the first number, and the second one per slot. The rest is extrapolated
ELEMENTS, PER_SLOT = 1_000, 8
ADAPTIVE_ELEMENTS = 4_000  # `Auto` takes a while to find its level
FEW_CALLS, MOST_CALLS = 1_000, 30_000  # of a shorter run and of a longer one, if calls are retried again and again
# The fitted service runs this many times longer than the others, so that the forecast depends less on chance
LONGER, LONGER_WITH_RETRIES = 15, 3
DELAYS = ("p50", "p99")
ABOUT_AS_FAST = 1.03
CHANCE = 2.5  # standard deviations of the difference of two counts
SEED = 1

Mode: TypeAlias = Literal["ordered", "unordered"]


@dataclass(frozen=True, slots=True)
class Forecast:
    """The time, the calls and the weight of a run with each capacity.

    `rehearse` creates it. Print it, or show it in a notebook.

    Attributes:
        rows: One for each capacity, in the order given.
        elements: How many elements the run has.
        assumptions: What was seen, what was assumed and what the sample cannot show, in sentences.
        options: The arguments of the run, without the capacity.
        is_known: Whether the sample can tell from which rate on the service refuses calls, if it refused some.
            Otherwise the intervals cover all possible rates, and there is no best setting.
    """

    rows: Sequence[ForecastRow]
    elements: int
    assumptions: Sequence[str]
    options: Mapping[str, Any] = field(repr=False)
    is_known: bool = True

    @property
    def best_row(self) -> ForecastRow:
        """The row of the smallest tested capacity that is about as fast as the fastest one, within 3 %.

        Capacities with which clearly more records have no result are left out.

        Raises:
            ValueError: The sample has reached none of the capacities, or `is_known` is False.
        """
        if not self.is_known:
            raise ValueError(
                "the forecast has no best setting, because the sample cannot tell from which rate on the service "
                "refuses calls: record more elements or a higher load, or choose a capacity yourself"
            )
        tested = [row for row in self.rows if row.is_tested]
        if not tested:
            lowest = min(row.capacity for row in self.rows)
            raise ValueError(
                f"capacity must be one that the sample has reached, got at least {lowest}: record more calls at a "
                "higher load, or rehearse a smaller capacity"
            )
        fewest = min(row.failed + row.timed_out for row in tested)
        good = [row for row in tested if not self._has_clearly_more(row, fewest)]
        fastest = min(row.seconds for row in good)
        return min((row for row in good if row.seconds <= ABOUT_AS_FAST * fastest), key=lambda row: row.capacity)

    @property
    def best(self) -> dict[str, Any]:
        """The best setting as keyword arguments for `ordered_wait`; see `best_row`. Raises as `best_row`."""
        return {"capacity": self.best_row.capacity, **self.options}

    def plot(self) -> str:
        """Time and calls (or weight) over the capacity, as an SVG document."""
        return drawing_of(self.rows, self.elements)

    def __str__(self) -> str:
        best = self.best_row if self.is_known and any(row.is_tested for row in self.rows) else None
        return text_of(self.rows, self.elements, best, self.assumptions, is_known=self.is_known)

    def _repr_html_(self) -> str:
        return f"<div>{self.plot()}<pre>{escape(str(self))}</pre></div>"

    def _has_clearly_more(self, row: ForecastRow, fewest: float) -> bool:
        """Whether clearly more records have no result. Both numbers are scaled counts, so chance makes them differ."""
        lost = row.failed + row.timed_out
        chance = CHANCE * sqrt((lost + fewest) * self.elements / row.simulated)
        return lost - fewest > max(chance, 0.1 * fewest + 0.001 * self.elements)


def rehearse(
    sample: Sample,
    elements: int,
    *,
    capacity: int | Sequence[int] = (),
    buffer: int | None = None,
    mode: Mode = "ordered",
    gate: Gate | Sequence[Gate] | None = None,
    retry: RetryStrategy | Literal["recorded"] | None = "recorded",
    timeout: float | Literal["recorded"] = "recorded",
    slower: float = 1.0,
    unseen: tuple[float, float] | None = None,
) -> Forecast:
    """Forecast a run from a sample of calls: how long it takes, how many calls it makes, and what they weigh.

    A model of the service is fitted to the sample, and the operator's own queues, scheduler, gates and retry strategies
    run the elements against it, without tasks and without waiting. Runs of more than a few thousand elements are
    extended at their pace. For intervals of 90 %, the runs are repeated with services that other samples of this size
    might have shown.

    The forecast assumes that the source has all elements, that the consumer is always ready, that failures do not end
    the run, and that the service stays as it was during the sample.

    Args:
        sample: Made by `record`.
        elements: How many elements the run has, at least 1.
        capacity: What to compare: a list of capacities, as in `ordered_wait`, or one of them. Empty: a tenth, a
            quarter, half and all of the load that the sample has reached.
        buffer: As in `ordered_wait`. None: the default of each capacity.
        mode: The output order: "ordered" or "unordered".
        gate: Gates of the run, without `PerKey`. Each run uses copies of them, without their state. A `Budget` does not
            end the forecast run: the assumptions say how far it goes.
        retry: The retry strategy. "recorded": the one of the sample.
        timeout: Seconds for each element. "recorded": the timeout of the sample.
        slower: A factor of the latencies, above 0: what if the service is slower than in the sample?
        unseen: (share, seconds): what if the sample has missed a kind of calls with this share, from 0 to 1, and this
            duration?

    Returns:
        A `Forecast`.

    Raises:
        TypeError, ValueError: An argument is invalid, or no call of the sample was answered.
        RuntimeError: A gate would stop the run, such as a circuit breaker that gives up.

    Example:
        forecast = rehearse(sample, 1_000_000, capacity=[20, 50, 100], gate=RateLimit(180))
        print(forecast)
        print(forecast.best)
    """
    if not isinstance(sample, Sample):
        raise TypeError(f"sample must be a Sample, made by record(), got {describe(sample)}")
    elements = check_int("elements", elements, at_least=1)
    service = _changed(fit(sample), slower, unseen)
    common: dict[str, Any] = {
        "timeout": sample.timeout if timeout == "recorded" else timeout,
        "retry": sample.retry if retry == "recorded" else retry,
        "buffer": buffer,
        "gate": gate,
    }
    if mode not in get_args(Mode):
        raise ValueError(f'mode must be "ordered" or "unordered", got {describe(mode)}')
    settings = [Options(capacity=each, mode=mode, **common) for each in _capacities(capacity, sample)]
    for options in settings:
        _check_setting(options, sample, service)
    random = Random(SEED)
    shares = (position / (RESAMPLES - 1) for position in range(RESAMPLES))
    others = [resampled(service, sample, random, share) for share in shares]
    # Every second one has no call longer than the longest one of the sample, which says nothing about longer ones
    others = [replace(each, tail=None) if position % 2 else each for position, each in enumerate(others)]
    rows = [_row(sample, service, others, elements, options) for options in settings]
    best = {name: value for name, value in common.items() if value is not None}
    said = assumptions(sample, service, rows, settings[0], elements)
    return Forecast(rows, elements, said, best, service.is_known)


# Arguments


def _capacities(capacity: int | Sequence[int], sample: Sample) -> list[int]:
    if isinstance(capacity, str):
        raise TypeError(
            f"capacity must be a whole number or a list of them, got {describe(capacity)}: to rehearse "
            'capacity="auto", give gate=Auto() and the largest capacity in question'
        )
    if not isinstance(capacity, Sequence):
        return [capacity]
    most = sample.tested
    return list(capacity) or sorted({max(1, most // 10), max(1, most // 4), max(1, most // 2), most})


def _changed(service: Service, slower: float, unseen: tuple[float, float] | None) -> Service:
    factor = check_number("slower", slower, "a finite factor above 0", lambda number: 0 < number < inf)
    if unseen is None:
        return replace(service, slower=factor)
    pair: Any = unseen
    if not (isinstance(pair, tuple | list) and len(pair) == 2):  # noqa: PLR2004 - a pair
        raise TypeError(f"unseen must be a pair (share of calls, seconds), got {describe(unseen)}")
    share = check_number("unseen[0]", unseen[0], "a share from 0 to 1", lambda number: 0 <= number <= 1)
    return replace(service, slower=factor, unseen=(share, check_seconds("unseen[1]", unseen[1], finite=True)))


def _check_setting(options: Options, sample: Sample, service: Service) -> None:
    gates = gates_of(options)
    if any(isinstance(gate, PerKey) for gate in gates):
        raise ValueError(
            f"gate must have no PerKey, got {describe(options.gate)}: the keys of the run are not known. Rehearse the "
            "elements of one key with its gates"
        )
    if any(gate.weight is not None for gate in options.gates if isinstance(gate, Gate)) and not sample.is_weighted:
        raise ValueError(
            f"gate must have no weight, because the sample has none, got {describe(options.gate)}: give record() the "
            "same weight="
        )
    if options.timeout == inf and any(seconds == inf for seconds, _ in service.admitted):
        raise ValueError(
            f"timeout must be finite, got inf: calls of the sample were cut after {duration(sample.timeout)}, so "
            "nobody can say how long they would take"
        )


# Rows


def _row(sample: Sample, service: Service, others: Sequence[Service], elements: int, options: Options) -> ForecastRow:
    """The forecast for one setting: a run with the fitted service, and shorter ones that show how far off it may be."""
    factor = LONGER if options.retry is None else LONGER_WITH_RETRIES
    few, longer = _lengths(service, elements, options, factor)
    is_refused = service.cap is not None and options.retry is not None
    if is_refused and service.is_known and not gates_of(options):
        repeated = 1
        spread = [service, *others[2::CAPPED_RUNS]]  # four others, from the lowest limit to the highest
        numbers, intervals = _middle(_runs(spread, longer, options, elements))
    else:
        repeated = ceil(factor * few / longer)
        runs = _runs([service] * repeated, longer, options, elements)
        numbers = {name: fmean(run[name] for run in runs) for name in runs[0]}
        shorter = _runs(others, few, options, elements, first=factor)
        is_alike = service.cap is None or service.is_known
        error = CAPPED_ERROR if is_refused else 0.0
        intervals = {name: _interval(name, value, shorter, error, is_alike=is_alike) for name, value in numbers.items()}
    low, high = intervals["seconds"]
    return ForecastRow(
        capacity=options.capacity,
        low=low,
        high=high,
        is_tested=options.capacity <= sample.tested,
        simulated=repeated * longer,
        intervals=intervals,
        **numbers,
    )


def _lengths(service: Service, elements: int, options: Options, factor: int) -> tuple[int, int]:
    """The numbers of elements of a shorter run, and of a run with the fitted service.

    Calls that are retried again and again take time to simulate, so their number is limited, too.
    """
    is_adaptive = any(isinstance(gate, Auto) for gate in options.gates)
    few = min(elements, ADAPTIVE_ELEMENTS if is_adaptive else max(ELEMENTS, PER_SLOT * options.capacity))
    longer = min(elements, factor * few)
    if options.retry is None:
        return few, longer
    trial = simulate(service, few, options, Random(SEED), weights=service.weights)
    longer = min(elements, max(longer, 2 * options.bound))  # records in backoffs fill the buffer
    return _at_most(FEW_CALLS, few, trial), _at_most(MOST_CALLS, longer, trial)


def _interval(
    name: str, value: float, shorter: Sequence[Mapping[str, float]], error: float, *, is_alike: bool
) -> tuple[float, float]:
    """The interval of a number, from shorter runs with other services.

    A shorter run takes another time for each element, but its delays are the same. With limits that differ widely, the
    middle one says nothing about the others.
    """
    values = [run[name] for run in shorter]
    middle = median(values)
    scale = value / middle if middle and name not in DELAYS and is_alike else 1.0
    low, high = min(value, scale * min(values)), max(value, scale * max(values))
    return low * exp(-error), high * exp(error)


def _middle(runs: Sequence[Mapping[str, float]]) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    """The numbers and the intervals of a few long runs in front of a known limit, any of which may be the real one.

    Chance decides which calls are refused, and refused calls come back together. Only long runs show the effect on the
    time and the delays.
    """
    numbers, intervals = {}, {}
    for name in runs[0]:
        values = [run[name] for run in runs]
        numbers[name], low, high = median(values), min(values), max(values)
        if 0 < low < high:
            logarithms = [log(each) for each in values]
            middle, spread = fmean(logarithms), hypot(CAPPED_WIDTH * stdev(logarithms), CAPPED_ERROR)
            low, high = min(low, exp(middle - spread)), max(high, exp(middle + spread))
        intervals[name] = low, high
    return numbers, intervals


def _at_most(calls: int, elements: int, trial: SimulatedRun) -> int:
    """The number of elements for which a run makes at most about this number of calls."""
    return max(1, min(elements, int(calls * trial.elements / max(1, trial.calls))))


def _runs(
    services: Sequence[Service], few: int, options: Options, elements: int, *, first: int = 0
) -> list[dict[str, float]]:
    """The numbers of a run with each service. Each run has its own random numbers, from this first seed on."""
    return [_numbers(each, few, options, Random(SEED + seed), elements) for seed, each in enumerate(services, first)]


def _numbers(service: Service, few: int, options: Options, random: Random, elements: int) -> dict[str, float]:
    """The numbers of a run of all elements, from one with a few."""
    run = simulate(service, few, options, random, weights=service.weights)
    factor = elements / run.elements
    counts = {name: factor * getattr(run, name) for name in ("calls", "refused", "retried", "timed_out", "failed")}
    return {
        "seconds": run.seconds_for(elements),
        "p50": run.delay(0.5),
        "p99": run.delay(0.99),
        "weight": factor * run.weight,
        **{name: float(round(value)) for name, value in counts.items()},
    }
