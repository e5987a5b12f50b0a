"""Takes a sample: real calls at several loads, made by the operator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice, takewhile
from operator import length_hint
from typing import Any
from warnings import warn

import trio

from .._core.gate import Gate, PerKey, RefusedError, as_gates
from .._core.reading import outcome_of
from .._core.retry import RetryStrategy
from .._operator.calls import usage_of_all
from .._operator.function import AsyncFunction, Function, Wrapper, as_function, awaitable_from
from .._operator.stream import unordered_wait
from .._values.checks import check_callback, check_int, check_optional_name, check_weight
from .._values.describe import describe
from ._sample import CallOutcome, RecordedCall, Sample

# Of the elements, the share at the largest load. The others are divided among the smaller ones
SHARE_AT_LARGEST = 0.75
CALLS_PER_ELEMENT = 5
SPREAD, GOLDEN_RATIO = 1_000.0, 0.618034  # multiples of the golden ratio are spread evenly between whole numbers


async def record(
    source: Iterable[Any],
    function: Function[Any, Any],
    elements: int = 200,
    *,
    timeout: float,  # noqa: ASYNC109 - of each element, as in `ordered_wait`
    loads: Sequence[int] = (5, 150),
    retry: RetryStrategy | None = None,
    gate: Gate | Sequence[Gate | PerKey] | None = None,
    weight: Callable[[Any], float] | None = None,
    weight_name: str | None = None,
    max_calls: int | None = None,
) -> Sample:
    """Make real calls for some elements, at each load in turn. `rehearse` forecasts a run from them.

    The elements should be spread over the input: the first rows of a sorted table are no sample. The operator makes the
    calls, with the timeout and the retry strategy of the run that is forecast. A failed element does not end the
    sample. Nothing is known about loads that were not reached, so the largest load should be the largest capacity in
    question, and the smallest one so low that no call waits inside the service.

    Args:
        source: An iterable of values, not an async one. Those of the sample are read before the first call is made, and
            no others.
        function: An async callable or an `AsyncFunction`, as for `ordered_wait`.
        elements: How many elements to call the function for, at least 1. 200 give the time of ordinary services to a
            few percent; a kind of call with a share of 1 % needs 2,000.
        timeout: Seconds for each element, as in `ordered_wait`.
        loads: How many calls run at once, each at least 1, in this order. The largest one gets three quarters of the
            elements.
        retry: The retry strategy of the run, or None.
        gate: Gates for the sample's calls, or None. With them, loads may not be reached.
        weight: element -> the weight of its call, such as tokens or money, at least 0 and finite; `gates.settle` in the
            function corrects it. It is called for all elements before the first call is made. None: calls have no
            weight, unless they call `gates.settle`.
        weight_name: As the `name` of a gate: `gates.settle` with another name does not correct this weight. None: only
            `settle` without a name does.
        max_calls: Upper limit of calls, retries included, at least 1. Calls that have started are not cancelled. None:
            five times `elements`.

    Returns:
        A `Sample`. It has every result, so that nothing is paid twice.

    Raises:
        TypeError, ValueError: An argument is invalid, the elements are too few to reach the largest load, the source is
            empty, or `weight` returned no legal number.
        Exception: What `weight` or the source raised. A note names the element.

    Warns:
        UserWarning: The sample has not reached the largest load, because the source or `max_calls` has ended it, or
            because calls end before others can start.

    Example:
        sample = await record(random.sample(urls, 200), fetch, loads=(5, 150), timeout=5.0)
        print(sample)
    """
    counts = _counts(check_int("elements", elements, at_least=1), _checked_loads(loads))
    most = CALLS_PER_ELEMENT * elements if max_calls is None else check_int("max_calls", max_calls, at_least=1)
    name = check_optional_name("weight_name", weight_name)
    if weight is not None:
        check_callback("weight", weight)
    gates = () if gate is None else as_gates(gate)
    if not isinstance(source, Iterable):
        raise TypeError(f"source must be an iterable, got {describe(source)}: if it is async, collect its values first")
    values = list(islice(source, elements))
    if not values:
        raise ValueError("the source is empty, so no call was made: give it elements")
    weights = {} if weight is None else {id(value): _estimate(weight, value) for value in values}
    limit = _CallLimit(most, weights, name)
    recorded = _Recorded(function, retry, name)
    rest = iter(values)
    for load, number in zip(loads, counts, strict=True):
        async with unordered_wait(
            takewhile(lambda _: not limit.is_reached, islice(rest, number)),
            recorded,
            capacity=load,
            timeout=timeout,
            retry=_Spread(retry) if isinstance(retry, RetryStrategy) else retry,
            on_error="skip",
            gate=[limit, *gates],
        ) as results:
            async for _ in results:
                pass
    taken = len(values) - length_hint(rest)
    sample = recorded.sample(taken, float(timeout), is_weighted=weight is not None)
    if sample.tested < max(loads):
        why = "calls end before others can start"
        if limit.is_reached:
            why = f"max_calls={limit.most}"
        elif len(values) < elements:
            why = f"the source has {len(values)} elements"
        warn(
            f"the sample has reached a load of {sample.tested}, not {max(loads)} ({why}): larger capacities are not "
            "tested",
            stacklevel=2,
        )
    return sample


def _checked_loads(loads: object) -> Sequence[int]:
    if isinstance(loads, str) or not (isinstance(loads, Sequence) and loads):
        raise TypeError(f"loads must be a list of whole numbers such as (5, 150), got {describe(loads)}")
    for position, load in enumerate(loads):
        check_int(f"loads[{position}]", load, at_least=1)
    return loads


def _counts(elements: int, loads: Sequence[int]) -> list[int]:
    """How many elements each load gets."""
    largest = max(range(len(loads)), key=loads.__getitem__)
    others = len(loads) - 1
    counts = [int(elements * (1 - SHARE_AT_LARGEST)) // max(1, others)] * len(loads)
    counts[largest] = elements - sum(counts) + counts[largest]
    if counts[largest] < loads[largest]:
        raise ValueError(
            f"elements must be enough to reach the load {loads[largest]}: {counts[largest]} of {elements} are for this "
            "load. Raise elements, or lower the load"
        )
    return counts


def _estimate(weight: Callable[[Any], float], value: Any) -> float:
    """The weight of an element's calls. An exception names the element."""
    try:
        return check_weight("weight", weight(value))
    except Exception as error:
        error.add_note(f"weight was called with the element {describe(value)}, before any call was made")
        raise


class _CallLimit(Gate):
    """Refuses calls beyond a number. In it, calls have their weights in the sample.

    Args:
        most: The number of calls.
        weights: id of an element -> the estimated weight of its calls; 0 if it is missing.
        name: The name of the weight, or None.
    """

    def __init__(self, most: int, weights: Mapping[int, float], name: str | None) -> None:
        self.most = most
        self.weight = lambda value: weights.get(id(value), 0.0)
        self.name = name
        self.is_reached = False
        self._calls = 0

    @property
    def identity(self) -> Hashable:
        """The object itself: it shares no state with a gate of the same name, since the name belongs to the weight."""
        return id(self)

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - as in `Gate`
        if self.is_reached:
            raise RefusedError(f"the sample has made max_calls={self.most} calls")
        return 0.0

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        self._calls += 1
        self.is_reached = self._calls >= self.most


class _Spread(RetryStrategy):
    """A strategy with which refused calls do not come back together.

    Calls that are refused together have the same delay. If they also came back together, a sample would show how many
    calls the service admits at one instant, but not how many per second. So each waits longer, by a share between a
    thousandth and the whole of its delay. The logarithms of the shares are evenly spread: whatever the rate is, the
    calls come faster at first and slower in the end.
    """

    _strategy: RetryStrategy
    _numbers: Iterator[int]

    def __init__(self, strategy: RetryStrategy) -> None:
        super().__init__(strategy.max_retries, attempt_timeout=strategy.attempt_timeout, budget=strategy.budget)
        object.__setattr__(self, "_strategy", strategy)
        object.__setattr__(self, "_numbers", count(1))

    def backoff(self, attempt: int, random: float) -> float:
        """The same as the strategy's."""
        return self._strategy.backoff(attempt, random)

    def retries_exception(self, exception: Exception) -> bool:
        """The same as the strategy's."""
        return self._strategy.retries_exception(exception)

    def retries_result(self, result: Any) -> bool:
        """The same as the strategy's."""
        return self._strategy.retries_result(result)

    def wait(self, attempt: int, random: float, exception: Exception | None = None) -> float:
        """The strategy's seconds, and a share of them after a refusal."""
        seconds = self._strategy.wait(attempt, random, exception)
        if exception is None or outcome_of(exception).kind != "throttled":
            return seconds
        share = next(self._numbers) * GOLDEN_RATIO % 1
        return seconds * (1.0 + float(SPREAD**-share))


class _Recorded(Wrapper, AsyncFunction[Any, Any]):
    """A function whose calls are recorded. `name` is the name of their weight, or None."""

    def __init__(self, function: Any, retry: RetryStrategy | None, name: str | None) -> None:
        self.function = function
        self._inner = as_function(function)
        for each in ("open", "close"):  # the operator looks for these
            if callable(method := getattr(self._inner, each, None)):
                setattr(self, each, method)
        self._retry = retry
        self._name = name
        self._running = 0
        self._calls: list[RecordedCall | None] = []  # None while a call runs
        self._answers: dict[int, tuple[Any, Any]] = {}
        self._zero: float | None = None

    async def invoke(self, value: Any) -> Any:
        """Call the function, and record the call."""
        now = trio.current_time()
        if self._zero is None:
            self._zero = now
        position = len(self._calls)
        self._calls.append(None)
        self._running += 1
        load = self._running
        outcome: CallOutcome = "cut"
        failure: Exception | None = None
        again: Any = None
        try:
            result = await awaitable_from(self._inner.invoke, value)
            is_retried = self._retry is not None and self._retry.retries_result(result)
        except Exception as error:
            outcome = "refused" if outcome_of(error).kind == "throttled" else "failed"
            failure = error
            raise
        else:
            if is_retried:
                outcome, again = "retried result", result
            else:
                outcome = "answered"
                self._answers[position] = value, result
            return result
        finally:
            self._running -= 1
            seconds = trio.current_time() - now
            estimate, settled = usage_of_all(self._name) or (0.0, 0.0)
            self._calls[position] = RecordedCall(
                now - self._zero, seconds, outcome, settled, load, failure, again, estimate
            )

    def sample(self, elements: int, timeout: float, *, is_weighted: bool) -> Sample:
        """What was recorded."""
        calls = tuple(call for call in self._calls if call is not None)
        answers = tuple(self._answers[position] for position in sorted(self._answers))
        is_weighted = is_weighted or any(call.weight for call in calls)
        return Sample(calls, elements, answers, timeout, self._retry, is_weighted)
