"""Takes a sample: real calls at several loads, made by the operator."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Sequence
from itertools import count, islice, takewhile
from math import inf
from operator import length_hint
from typing import Any
from warnings import warn

import trio

from .._core.admission import check_settled
from .._core.elements import Watermark, value_of
from .._core.gate import CURRENT_CALL, Gate, PerKey, RefusedError
from .._core.reading import outcome_of
from .._core.retry import RetryStrategy
from .._operator.function import AsyncFunction, Function, Wrapper, as_function, awaitable_from
from .._operator.stream import unordered_wait
from .._values.checks import check_callback, check_int, check_number, check_optional_name
from .._values.describe import describe
from ._sample import CallOutcome, RecordedCall, Sample

__all__ = ["record"]

# Of the elements, the share at the largest load. The others are divided among the smaller ones
SHARE_AT_LARGEST = 0.75
CALLS_PER_ELEMENT = 5
SPREAD, GOLDEN_RATIO = 1_000.0, 0.618034  # multiples of the golden ratio are spread evenly between whole numbers
_END = object()


async def record(
    source: Iterable[Any] | AsyncIterable[Any],
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
        source: An iterable or an async iterable. The elements of the sample are read before the first call is made, and
            no others. It is never closed. Watermarks in it are ignored.
        function: An async callable or an `AsyncFunction`, as for `ordered_wait`.
        elements: How many elements to call the function for, at least 1. 200 give the time of ordinary services to a
            few percent; a kind of call with a share of 1 % needs 2,000.
        timeout: Seconds for each element, as in `ordered_wait`.
        loads: How many calls run at once, each at least 1, in this order. The largest one gets three quarters of the
            elements.
        retry: The retry strategy of the run, or None.
        gate: Gates for the sample's calls, or None. With them, loads may not be reached.
        weight: element -> what its call weighs, such as tokens or money, at least 0 and finite; `gates.settle` corrects
            it in the call. It is called for all elements before the first call is made. None: calls have no weight,
            unless they call `gates.settle`.
        weight_name: The name with which `gates.settle` corrects this weight, if others have another unit. None: every
            call of `settle` does.
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
    limit = _CallLimit(_checked_limit(max_calls, elements))
    gates = () if gate is None else (gate,) if isinstance(gate, Gate | PerKey) else tuple(gate)
    recorded = _Recorded(function, retry, check_optional_name(weight_name))
    if weight is not None:
        check_callback("weight", weight)
    values = await _values(source, elements)
    if not values:
        raise ValueError("the source is empty, so no call was made: give it elements")
    if weight is not None:
        recorded.weights = {id(value): _estimate(weight, value) for value in values}
    rest = iter(values)
    for phase, (load, number) in enumerate(zip(loads, counts, strict=True)):
        recorded.phase = phase
        async with unordered_wait(
            takewhile(lambda _: not limit.is_reached, islice(rest, number)),
            recorded,
            capacity=load,
            timeout=timeout,
            retry=None if retry is None else _Spread(retry),
            on_error="skip",
            gate=[limit, *gates],
        ) as results:
            async for _ in results:
                pass
    taken = len(values) - length_hint(rest)
    sample = recorded.sample(taken, float(timeout))
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


def _checked_limit(max_calls: int | None, elements: int) -> int:
    return CALLS_PER_ELEMENT * elements if max_calls is None else check_int("max_calls", max_calls, at_least=1)


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


async def _values(source: Any, most: int) -> list[Any]:
    """The first elements of the source, without watermarks. None is read beyond them."""
    is_async = isinstance(source, AsyncIterable)
    elements: Any = aiter(source) if is_async else iter(source)
    values: list[Any] = []
    while len(values) < most:
        element = await anext(elements, _END) if is_async else next(elements, _END)
        if element is _END:
            break
        if not isinstance(element, Watermark):
            values.append(value_of(element))
    return values


def _estimate(weight: Callable[[Any], float], value: Any) -> float:
    """The weight of an element's calls. An exception names the element."""
    try:
        return check_number("weight", weight(value), "finite and not negative", lambda number: 0 <= number < inf)
    except Exception as error:
        error.add_note(f"weight was called with the element {describe(value)}, before any call was made")
        raise


class _CallLimit(Gate):
    """Refuses calls beyond a number."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.is_reached = False
        self._calls = 0

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - as in `Gate`
        if self.is_reached:
            raise RefusedError(f"the sample has made max_calls={self.most} calls")
        return 0.0

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        self._calls += 1
        self.is_reached = self._calls >= self.most


class _Spread(RetryStrategy):
    """A strategy with which refused calls do not come back together.

    Calls that are refused together are told the same delay. If they came back together as well, a sample would show
    how many calls the service admits at once, but not how many per second. So each waits longer, by a share between a
    thousandth and the whole of its delay. On a scale of logarithms, the shares are even: whatever the rate is, the
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
    """A function whose calls are recorded.

    Attributes:
        phase: Of the calls that start now.
        weights: id of an element -> the estimated weight of its calls. None: they have none.
    """

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
        self.phase = 0
        self.weights: dict[int, float] | None = None

    async def invoke(self, value: Any) -> Any:
        """Call the function, and record the call."""
        weight = _Weight(None if self.weights is None else self.weights[id(value)], self._name)
        token = CURRENT_CALL.set(weight)
        position, self._running, now = len(self._calls), self._running + 1, trio.current_time()
        self._zero = now if self._zero is None else self._zero
        self._calls.append(None)
        load, phase = self._running, self.phase
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
            settled, estimate = weight.settled, weight.estimate or 0.0
            self._calls[position] = RecordedCall(
                now - self._zero, seconds, outcome, settled, load, phase, failure, again, estimate
            )
            weight.has_ended = True
            CURRENT_CALL.reset(token)

    def sample(self, elements: int, timeout: float) -> Sample:
        """What was recorded."""
        calls = tuple(call for call in self._calls if call is not None)
        is_weighted = self.weights is not None or any(call.weight for call in calls)
        answers = tuple(self._answers[position] for position in sorted(self._answers))
        return Sample(calls, elements, answers, timeout, self._retry, is_weighted)


class _Weight:
    """What a call weighs. In the place of the call's gates, for `settle` and `usage`."""

    def __init__(self, estimate: float | None, name: str | None) -> None:
        self.estimate = estimate
        self.has_ended = False
        self._name = name
        self._actual: float | None = None
        self._outer = CURRENT_CALL.get()

    def settle(self, actual: float, name: str | None) -> None:
        """Correct the weight. Raises the same errors as `settle` in a call of an operator."""
        is_named = self._is_named(name)
        least = self._actual if is_named and self._actual is not None else inf
        check_settled(actual, least, has_ended=self.has_ended)
        if is_named:
            self._actual = actual
        if self._outer is not None:
            self._outer.settle(actual, name)

    def usage(self, name: str | None) -> tuple[float, float] | None:
        """The estimated and the present weight."""
        outer: tuple[float, float] | None = None if self._outer is None else self._outer.usage(name)
        if outer is not None or self.estimate is None or not self._is_named(name):
            return outer
        return self.estimate, self.estimate if self._actual is None else self._actual

    @property
    def settled(self) -> float:
        """The weight in the end: a call that has not settled weighs its estimate, whatever became of it."""
        return (self.estimate or 0.0) if self._actual is None else self._actual

    def _is_named(self, name: str | None) -> bool:
        return name is None or self._name in {None, name}
