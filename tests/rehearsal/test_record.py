from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import trio

from tests.rehearsal.planted import in_virtual_time
from trio_asyncio_io import AsyncFunction, FixedDelay
from trio_asyncio_io.gates import RateLimit, settle
from trio_asyncio_io.integration import usage_of_all as usage
from trio_asyncio_io.policies import hedged
from trio_asyncio_io.rehearsal import Sample, record


class BusyError(Exception):
    status = 429


async def answer(value: int) -> int:
    await trio.sleep(0.1)
    return value * 2


def sample_of(source: Any, function: Any, *arguments: Any, **options: Any) -> Sample:
    options = {"timeout": 1.0, "loads": (2, 10), **options}
    sample: Sample = in_virtual_time(lambda: record(source, function, *arguments, **options))
    return sample


def test_a_sample_has_each_call_with_its_load() -> None:
    sample = sample_of(range(100), answer, 40)
    assert len(sample.calls) == sample.elements == 40
    assert {call.load for call in sample.calls[:10]} == {1, 2}
    assert {call.load for call in sample.calls[10:]} == set(range(1, 11))
    assert sample.tested == 10
    assert {round(call.seconds, 6) for call in sample.calls} == {0.1}
    assert sample.seconds == pytest.approx(0.8)
    assert str(sample) == "40 calls for 40 elements in 800 ms, up to 10 at once: 40 answered"


def test_the_answers_are_kept() -> None:
    sample = sample_of(range(40), answer, 40)
    assert sorted(sample.answers) == [(number, 2 * number) for number in range(40)]


def test_the_source_is_read_for_the_sample_only() -> None:
    source = iter(range(1000))
    sample_of(source, answer, 40)
    assert next(source) == 40


def test_failures_do_not_end_a_sample() -> None:
    async def sometimes(value: int) -> int:
        if value % 4 == 0:
            raise ValueError("planted")
        return await answer(value)

    sample = sample_of(range(40), sometimes, 40)
    assert [call.outcome for call in sample.calls].count("failed") == 10
    assert len(sample.answers) == 30


def test_a_call_that_a_timeout_cancels_is_cut() -> None:
    async def slow(value: int) -> int:
        await trio.sleep(5.0 if value == 3 else 0.1)
        return value

    (cut,) = [call for call in sample_of(range(40), slow, 40).calls if call.outcome == "cut"]
    assert cut.seconds == 1.0


def test_refused_calls_are_repeated_by_the_retry_strategy() -> None:
    refused: set[int] = set()

    async def busy(value: int) -> int:
        if value % 2 and value not in refused:
            refused.add(value)
            raise BusyError
        return await answer(value)

    sample = sample_of(range(40), busy, 40, retry=FixedDelay(2, 0.05))
    assert [call.outcome for call in sample.calls].count("refused") == 20
    assert len(sample.calls) == 60
    assert len(sample.answers) == 40


def test_a_result_that_is_retried_is_no_answer() -> None:
    calls: list[int] = []

    async def later(value: int) -> int | None:
        calls.append(value)
        await trio.sleep(0.1)
        return value if calls.count(value) > 1 else None

    retry = FixedDelay(2, 0.05, retry_on_result=lambda result: result is None)
    sample = sample_of(range(1, 41), later, 40, retry=retry, max_calls=80)
    assert [call.outcome for call in sample.calls].count("retried result") == 40
    assert sorted(sample.answers) == [(number, number) for number in range(1, 41)]


def test_no_more_calls_are_made_than_max_calls() -> None:
    calls = 0

    async def refuse(value: int) -> int:
        nonlocal calls
        calls += 1
        await trio.sleep(0.1)
        raise BusyError

    with pytest.warns(UserWarning, match=r"has reached a load of 2, not 10 \(max_calls=25\)"):
        sample = sample_of(range(40), refuse, 40, retry=FixedDelay(1000, 0.01, retry_on=BusyError), max_calls=25)
    assert calls == len(sample.calls) == 25


def test_a_source_that_is_too_short_is_told() -> None:
    with pytest.warns(UserWarning, match=r"has reached a load of 4, not 10 \(the source has 14 elements\)"):
        sample = sample_of(range(14), answer, 40)
    assert len(sample.calls) == sample.elements == 14


def test_weights_are_settled_by_the_call() -> None:
    async def ask(value: int) -> int:
        if value == 1:
            settle(7.0)
        if value == 2:
            raise ValueError("planted")
        return await answer(value)

    sample = sample_of(range(40), ask, 40, weight=lambda value: 100.0 * value)
    assert [call.weight for call in sample.calls][:4] == [0.0, 7.0, 200.0, 300.0]
    assert sample.is_weighted
    assert [call.estimate for call in sample.calls][:4] == [0.0, 100.0, 200.0, 300.0]
    assert sum(call.weight for call in sample.calls) == pytest.approx(7.0 + 100.0 * sum(range(2, 40)))


def _unknown(_: int) -> float:
    raise KeyError("no such model")


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        (lambda value: math.nan if value == 7 else 1.0, ValueError, "weight must be finite and not negative, got nan"),
        (lambda value: 6.0 - value, ValueError, r"weight must be finite and not negative, got -1\.0"),
        (lambda value: "cheap" if value == 7 else 1.0, TypeError, "weight must be an int or a float, got 'cheap'"),
        (_unknown, KeyError, "no such model"),
    ],
)
def test_a_weight_that_fails_names_the_element_and_costs_no_call(
    weight: Any, error: type[Exception], message: str
) -> None:
    calls: list[int] = []

    async def ask(value: int) -> None:
        calls.append(value)

    with pytest.raises(error, match=message) as caught:
        sample_of(range(40), ask, 40, weight=weight)
    element = 0 if error is KeyError else 7
    assert caught.value.__notes__ == [f"weight was called with the element {element}, before any call was made"]
    assert not calls


def test_refused_calls_do_not_come_back_together() -> None:
    refused: set[int] = set()

    async def busy(value: int) -> int:
        if value not in refused:
            refused.add(value)
            await trio.sleep(0.1)
            raise BusyError
        return await answer(value)

    sample = sample_of(range(40), busy, 40, loads=(40,), timeout=5.0, retry=FixedDelay(2, 0.5))
    back = sorted(call.start for call in sample.calls if call.outcome == "answered")
    assert 0.6 <= back[0] < back[-1] <= 1.1
    assert len(set(back)) == 40


def test_a_weight_may_have_a_name() -> None:
    async def ask(value: int) -> int:
        settle(5.0, "tokens")
        settle(0.1, "dollars")
        assert usage("dollars") == (1.0, 0.1)
        return await answer(value)

    sample = sample_of(range(40), ask, 40, weight=lambda _: 1.0, weight_name="dollars")
    assert {call.weight for call in sample.calls} == {0.1}


def test_the_second_calls_of_hedged_have_weights() -> None:
    calls = 0

    async def ask(value: int) -> int:
        nonlocal calls
        calls += 1
        await trio.sleep(1.0 if calls % 3 == 0 else 0.1)
        return value

    sample = sample_of(range(40), hedged(ask, after=0.3), 40, timeout=5.0, weight=lambda _: 1.0)
    assert sum(call.weight for call in sample.calls) == calls > 40


def test_settle_reaches_the_gates_of_the_sample() -> None:
    async def ask(value: int) -> int:
        settle(0.0)
        return await answer(value)

    gate = RateLimit(100.0, burst=200.0, weight=lambda _: 10.0)
    settled, estimated = (sample_of(range(40), function, 40, gate=gate) for function in (ask, answer))
    assert settled.seconds < 1.0 < estimated.seconds


def test_a_function_is_opened_and_closed() -> None:
    steps: list[str] = []

    class Lookup(AsyncFunction[int, int]):
        async def open(self) -> None:
            steps.append("open")

        async def invoke(self, value: int) -> int:
            return await answer(value)

        async def close(self) -> None:
            steps.append("close")

    sample_of(range(40), Lookup(), 40)
    assert steps == ["open", "close", "open", "close"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"elements": 0}, ValueError, "elements must be at least 1, got 0"),
        ({"elements": 12}, ValueError, "elements must be enough to reach the load 10: 9 of 12 are for this load"),
        ({"loads": ()}, TypeError, r"loads must be a list of whole numbers such as \(5, 150\), got \(\)"),
        ({"loads": 5}, TypeError, "loads must be a list of whole numbers"),
        ({"loads": (5, 0)}, ValueError, r"loads\[1\] must be at least 1, got 0"),
        ({"loads": (5, 2.5)}, TypeError, r"loads\[1\] must be a whole number, got 2.5"),
        ({"max_calls": 0}, ValueError, "max_calls must be at least 1, got 0"),
        ({"weight": 3}, TypeError, "weight must be callable, got 3"),
        ({"weight_name": ""}, ValueError, "weight_name must not be empty, got ''"),
        ({"timeout": -1}, ValueError, "timeout must be seconds, not negative"),
        ({"retry": 3}, TypeError, r"retry must be a RetryStrategy such as FixedDelay\(3, 1.0\), got 3"),
        (
            {"source": trio.open_memory_channel[int](0)[1]},
            TypeError,
            "source must be an iterable, got .*: if it is",
        ),
        ({"source": []}, ValueError, "the source is empty, so no call was made: give it elements"),
    ],
)
def test_an_invalid_argument_is_refused(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sample_of(**{"source": range(100), "function": answer, "elements": 40, **arguments})


def test_a_single_load_gets_all_elements() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sample = sample_of(range(100), answer, 10, loads=(10,))
    assert len(sample.calls) == 10
