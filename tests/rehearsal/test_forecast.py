from __future__ import annotations

import pickle
import re
from dataclasses import replace
from itertools import product
from math import inf
from random import Random
from statistics import fmean, median
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import trio

from benchmarks.forecast._services import PATIENT, SERVICES, BusyError, Planted, function_of
from tests.rehearsal.planted import in_virtual_time, operated, sampled
from tests.support import thorough_except, variation_except
from trio_asyncio_io import FixedDelay, ordered_wait
from trio_asyncio_io.gates import Auto, Budget, Gate, PerKey, RateLimit, settle
from trio_asyncio_io.rehearsal import Forecast, ForecastRow, RecordedCall, Sample, record, rehearse
from trio_asyncio_io.rehearsal._service import fit

BY_NAME = {service.name: service for service in SERVICES}
GAMMA = BY_NAME["gamma"]
EVENLY = Planted("evenly", lambda _: (0.1, None))


@pytest.fixture(scope="module")
def sample() -> Sample:
    return sampled(GAMMA, 1)


@pytest.fixture(scope="module")
def capped() -> Sample:
    return sampled(BY_NAME["120 calls per second"], 1, weight=lambda _: 0.01)


@pytest.fixture(scope="module")
def busy(capped: Sample) -> Forecast:
    return rehearse(capped, 100, capacity=[20, 50, 150, 400], timeout=3.0)


@pytest.fixture(scope="module")
def plain(sample: Sample) -> Forecast:
    return rehearse(sample, 1_000)


# The forecast beside the run: the full table is written by `python -m benchmarks.forecast`


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        pytest.param("gamma", 0.1, marks=pytest.mark.variation),
        pytest.param("Weibull", 0.1, marks=pytest.mark.thorough),
        pytest.param("a cache before a service", 0.15, marks=pytest.mark.variation),
        ("8 % failures, retried", 0.1),
        pytest.param("35 servers", 0.1, marks=pytest.mark.thorough),
        ("80 servers", 0.1),
    ],
)
def test_the_time_is_forecast_from_200_calls(name: str, limit: float) -> None:
    service = BY_NAME[name]
    seconds, _ = operated(service, 3_000, 1, capacity=60, timeout=60.0, retry=service.retry)
    rows = [rehearse(sampled(service, seed), 3_000, capacity=60).rows[0] for seed in range(10, 13)]
    assert median(abs(row.seconds / seconds - 1) for row in rows) < limit
    assert sum(row.low <= seconds <= row.high for row in rows) >= 2


def test_a_rate_is_found_and_a_gate_for_it_needs_fewer_calls(capped: Sample, busy: Forecast) -> None:
    gated = rehearse(capped, 1_000, capacity=20, gate=RateLimit(118.0)).rows[0]
    assert gated.seconds == pytest.approx(1_000 / 118, rel=0.03)
    assert gated.calls / 1_000 < busy.rows[0].calls / 100 / 2
    assert any("The service admits 1" in each and "compare gate=RateLimit(1" in each for each in busy.assumptions)


@pytest.mark.parametrize("seed", thorough_except([1], [1, 2, 3]))
@pytest.mark.parametrize(
    ("rate", "options"),
    [(50.0, {"window": 1.0, "hint": 2.0}), (10.0, {"window": 3.0, "slides": True, "hint": 0.4})],
    ids=["fixed window", "sliding window"],
)
def test_the_rate_of_a_window_is_found_or_bounded(rate: float, options: dict[str, Any], seed: int) -> None:
    service = Planted("capped", GAMMA.draw, rate=rate, retry=PATIENT, **options)
    said = " ".join(rehearse(sampled(service, seed), 100, capacity=20).assumptions)
    if found := re.search(r"admits ([\d.,]+) calls per second", said):
        assert float(found[1].replace(",", "")) == pytest.approx(rate, rel=0.1)
    else:
        bounds = re.search(r"cannot tell from which rate on: (?:between ([\d.,]+) and|at least) ([\d.,]+)", said)
        assert bounds is not None, said
        low, high = (bounds[1], bounds[2]) if bounds[1] else (bounds[2], "inf")
        assert float(low.replace(",", "")) <= rate <= float(high.replace(",", ""))


@pytest.mark.variation
def test_a_rate_that_the_sample_cannot_tell_has_bounds_and_no_advice() -> None:
    service = Planted("capped", GAMMA.draw, rate=700.0, burst=50.0, hint=3.0, retry=PATIENT)
    forecast = rehearse(sampled(service, 1), 1_000, capacity=[20, 100])
    assert any("the sample cannot tell from which rate on: at least" in each for each in forecast.assumptions)
    assert not any("compare gate=RateLimit" in each for each in forecast.assumptions)
    assert "> Take" not in str(forecast)
    with pytest.raises(ValueError, match="the forecast has no best setting, because the sample cannot tell"):
        _ = forecast.best
    for row in forecast.rows:
        seconds, _ = operated(service, 1_000, 1, capacity=row.capacity, timeout=60.0, retry=service.retry)
        assert row.low <= seconds <= row.high


def test_a_number_that_the_sample_cannot_tell_is_not_shown() -> None:
    service = Planted("capped", GAMMA.draw, rate=100.0, window=1.0, hint=1.0, retry=PATIENT)
    forecast = rehearse(sampled(service, 1), 3_000, capacity=60)
    (row,) = forecast.rows
    assert row.high > 2 * row.low
    assert str(forecast).splitlines()[1].split()[:2] == ["60", "?"]
    assert "? The sample cannot tell this number." in str(forecast)


def test_a_limit_that_admits_the_whole_sample_is_named_as_one_that_it_cannot_show() -> None:
    service = Planted("capped", GAMMA.draw, rate=100.0, window=2.0, hint=1.0, retry=PATIENT)
    said = " ".join(rehearse(sampled(service, 1), 3_000, capacity=60).assumptions)
    assert "It cannot show larger loads, limits that its 200 calls stay within (such as a number per minute" in said


@pytest.mark.variation
def test_refusals_that_took_equally_long_come_back_at_one_instant() -> None:
    service = Planted("capped", GAMMA.draw, rate=180.0, burst=1.0, hint=2.0, retry=PATIENT)
    taken = sampled(service, 1)
    refusals = {call.seconds for call in taken.calls if call.outcome == "refused"}
    assert len(refusals) > 1  # each took 0.004 s, but for the rounding of the clock
    assert {seconds for seconds, _ in fit(taken).refused} == {0.004}


@pytest.mark.parametrize(
    ("share", "seed", "size"),
    thorough_except(
        [(0.01, 2, 800), (0.03, 10, 200)],
        [(0.01, 2, 800), (0.02, 3, 800), (0.05, 3, 800), (0.02, 2, 200), (0.03, 10, 200)],
    ),
)
def test_calls_that_are_refused_at_random_show_no_limit_and_give_no_advice(share: float, seed: int, size: int) -> None:
    def draw(random: Random) -> tuple[float, Exception | None]:
        return (0.004, BusyError(429)) if random.random() < share else GAMMA.draw(random)

    forecast = rehearse(sampled(Planted("random", draw, retry=PATIENT), seed, size), 1_000, capacity=[20, 100])
    assert not forecast.is_known
    assert any("the sample cannot tell why" in each for each in forecast.assumptions)
    assert forecast.rows[0].refused / forecast.rows[0].calls == pytest.approx(share, abs=0.02)
    with pytest.raises(ValueError, match="the forecast has no best setting, because the sample cannot tell"):
        _ = forecast.best


@pytest.mark.parametrize("refused", [1, 2])
def test_one_or_two_refused_calls_give_no_advice(sample: Sample, refused: int) -> None:
    calls = [
        replace(call, outcome="refused", error=BusyError(429)) if position < refused else call
        for position, call in enumerate(sample.calls)
    ]
    forecast = rehearse(replace(sample, calls=calls), 1_000, capacity=[20, 100])
    assert not forecast.is_known
    assert any("the sample cannot tell why" in each for each in forecast.assumptions)


def test_a_sample_that_is_slower_than_the_run_says_so(sample: Sample) -> None:
    said = r"The run makes up to 1,[78]\d\d calls per second, and the sample made at most 200 in one second"
    assert any(re.match(said, each) for each in rehearse(sample, 10_000, capacity=[20, 150]).assumptions)
    assert not any("The run makes" in each for each in rehearse(sample, 10_000, capacity=20).assumptions)


def test_servers_are_found_and_more_slots_are_not_recommended() -> None:
    forecast = rehearse(sampled(BY_NAME["35 servers"], 1), 50_000, capacity=[10, 40, 80, 150])
    assert forecast.best_row.capacity == 40
    assert any("calls at once" in each and "wait inside the service" in each for each in forecast.assumptions)


@pytest.mark.parametrize(
    "name", thorough_except(["gamma", "8 % failures, retried"], ["gamma", "Weibull", "8 % failures, retried"])
)
def test_no_limit_is_invented(name: str) -> None:
    for seed in range(3):
        assert any("No limit" in each for each in rehearse(sampled(BY_NAME[name], seed), 100).assumptions)


def test_equal_calls_show_no_limit_because_of_rounding() -> None:
    taken = sampled(Planted("constant", lambda _: (0.15, None)), 1, 800)
    assert any("No limit" in each for each in rehearse(taken, 100).assumptions)


def test_rare_and_heavy_calls_are_named() -> None:
    stragglers = rehearse(sampled(BY_NAME["2 % stragglers"], 3), 1_000).assumptions
    heavy = rehearse(sampled(BY_NAME["heavy tail (Pareto, 1.3)"], 3), 1_000).assumptions
    assert any("of a slow kind" in each for each in stragglers)
    assert any("The longest calls decide" in each for each in heavy)


# Rows


def test_equal_calls_give_an_exact_forecast() -> None:
    row = rehearse(sampled(EVENLY, 1), 10_000, capacity=10).rows[0]
    assert row.seconds == pytest.approx(100.0)
    assert (row.low, row.high) == (pytest.approx(100.0), pytest.approx(100.0))
    assert (row.p50, row.p99) == (pytest.approx(0.1), pytest.approx(0.1))
    assert row.calls == 10_000


def test_each_number_has_an_interval_around_it(sample: Sample) -> None:
    for row in rehearse(sample, 20_000, capacity=[20, 100]).rows:
        for name, (low, high) in row.intervals.items():
            assert low <= getattr(row, name) <= high
        assert row.intervals["seconds"] == (row.low, row.high)
        assert row.low < row.seconds < row.high


def test_a_longer_run_takes_longer_in_proportion(sample: Sample) -> None:
    short, long = (rehearse(sample, elements, capacity=50).rows[0] for elements in (100_000, 1_000_000))
    assert long.seconds == pytest.approx(10 * short.seconds, rel=0.01)
    assert long.calls == 1_000_000


@pytest.mark.parametrize("options", [{}, {"gate": RateLimit(500.0)}, {"retry": FixedDelay(2, 0.1)}])
def test_few_elements_are_simulated_for_a_million(
    sample: Sample, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    from trio_asyncio_io.rehearsal import _forecast  # noqa: PLC0415

    simulated: list[int] = []
    simulate = _forecast.simulate

    def counted(service: Any, elements: int, *arguments: Any, **more: Any) -> Any:
        simulated.append(elements)
        return simulate(service, 40, *arguments, **more)

    monkeypatch.setattr(_forecast, "simulate", counted)
    rehearse(sample, 1_000_000, capacity=[20, 50, 100, 150], **options)
    assert sum(simulated) < 150_000


def test_no_two_runs_of_a_forecast_are_equal(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    from trio_asyncio_io.rehearsal import _forecast  # noqa: PLC0415

    begins: list[object] = []
    simulate = _forecast.simulate

    def seen(service: Any, elements: int, options: Any, random: Random, **more: Any) -> Any:
        begins.append(random.getstate())
        return simulate(service, elements, options, random, **more)

    monkeypatch.setattr(_forecast, "simulate", seen)
    rehearse(sample, 500, capacity=20)
    assert len(begins) == len(set(begins)) == 15 + 19


def test_the_same_sample_gives_the_same_forecast(sample: Sample) -> None:
    options: dict[str, Any] = {"capacity": 10, "gate": Auto(2, 10), "retry": FixedDelay(2, 0.1)}
    assert rehearse(sample, 100, **options).rows == rehearse(sample, 100, **options).rows


ENDINGS = ("settles and fails", "fails without settle", "is cut", "is cut by the run")
ONCE, RETRIED = None, FixedDelay(3, 0.1, attempt_timeout=2.0)


@pytest.mark.parametrize(
    ("retry", "what"),
    variation_except([(ONCE, "settles and fails"), (RETRIED, "is cut")], list(product([ONCE, RETRIED], ENDINGS))),
)
def test_the_money_of_a_forecast_is_that_of_the_budget(what: str, retry: FixedDelay | None) -> None:
    """A quarter of the calls fails. Each is paid: what it settled, or else its estimate."""

    async def ask(value: int) -> int:
        fails = Random(f"{value} {trio.current_time()}").random() < 0.25
        if what == "settles and fails":
            settle(3.0)
        await trio.sleep(30.0 if fails and what == "is cut" else 1.0 if fails and "run" in what else 0.1)
        if fails and "fails" in what:
            raise ValueError("planted")
        settle(2.0)
        return value

    timeout = 0.5 if "run" in what else 3.0
    options: dict[str, Any] = {"capacity": 20, "timeout": timeout, "retry": retry}
    budget = Budget(1e9, weight=lambda _: 5.0)

    async def main() -> ForecastRow:
        taken = await record(range(400), ask, 400, timeout=3.0, loads=(5, 20), weight=lambda _: 5.0, retry=retry)
        async with ordered_wait(range(3_000), ask, gate=budget, on_error="skip", **options) as results:
            async for _ in results:
                pass
        return rehearse(taken, 3_000, **options).rows[0]

    row: ForecastRow = in_virtual_time(main)
    low, high = row.intervals["weight"]
    assert row.weight == pytest.approx(budget.spent, rel=0.1)
    assert 0.98 * low <= budget.spent <= 1.02 * high


def test_a_long_call_of_the_forecast_is_never_longer_than_the_timeout_of_the_sample() -> None:
    def draw(random: Random) -> tuple[float, None]:
        return min(4.9, 0.05 * random.paretovariate(0.8)), None

    service = fit(sampled(Planted("heavy", draw), 1, timeout=5.0))
    assert service.tail is not None
    begin = service.open(Random(1))
    times = [begin(0.0, inf)[0] for _ in range(20_000)]
    assert max(times) == 5.0


def test_the_mean_latency_of_the_forecast_is_that_of_the_sample() -> None:
    def draw(random: Random) -> tuple[float, None]:
        return (random.uniform(0.3, 0.6) if random.random() < 0.3 else random.lognormvariate(-3, 0.3)), None

    service = fit(sampled(Planted("slow calls with an upper limit", draw), 1))
    begin = service.open(Random(1))
    mean = fmean(seconds for seconds, _ in service.admitted)
    assert fmean(begin(0.0, inf)[0] for _ in range(100_000)) == pytest.approx(mean, rel=0.01)


def test_a_forecast_says_how_far_a_budget_goes() -> None:
    taken = sampled(EVENLY, 1, weight=lambda _: 0.25)
    small = rehearse(taken, 10_000, capacity=50, gate=Budget(100.0, weight=lambda _: 1.0))
    assert small.rows[0].failed == 0
    assert any(
        "The budget has 100 left, and the run needs 2,500: about 400 of the elements (4%)." in each
        for each in small.assumptions
    )
    calls = rehearse(taken, 10_000, capacity=50, gate=Budget(20_000))
    assert "The run needs 10,000 of the 20,000 left in the budget." in calls.assumptions


def test_failures_and_timeouts_are_forecast() -> None:
    service = Planted("failing", lambda random: (0.1, ValueError() if random.random() < 0.25 else None))
    failing = rehearse(sampled(service, 1), 8_000, capacity=10).rows[0]
    assert failing.failed == pytest.approx(2_000, rel=0.25)
    slow = rehearse(sampled(GAMMA, 1), 8_000, capacity=10, timeout=0.05).rows[0]
    assert slow.timed_out > 4_000


def test_what_if_calls_are_slower_or_unseen() -> None:
    taken = sampled(EVENLY, 1)
    assert rehearse(taken, 1_000, capacity=10, slower=2.0).rows[0].seconds == pytest.approx(20.0)
    unseen = rehearse(taken, 50_000, capacity=10, unseen=(0.01, 5.0))
    assert unseen.rows[0].seconds == pytest.approx(50_000 / 10 * (0.1 * 0.99 + 5.0 * 0.01), rel=0.1)
    assert "What if: 0.01 of the calls take 5 s." in unseen.assumptions


# The best row


@pytest.mark.variation
def test_only_tested_capacities_are_recommended(sample: Sample) -> None:
    forecast = rehearse(sample, 50_000, capacity=[20, 150, 400])
    assert [row.is_tested for row in forecast.rows] == [True, True, False]
    assert forecast.best == {"capacity": 150, "timeout": 60.0}
    with pytest.raises(ValueError, match="capacity must be one that the sample has reached, got at least 300"):
        _ = rehearse(sample, 1_000, capacity=[300, 400]).best


def test_the_best_setting_runs(sample: Sample) -> None:
    best = rehearse(sample, 100, capacity=20, retry=FixedDelay(2, 0.1), gate=RateLimit(500.0)).best

    async def main() -> int:
        async with ordered_wait(range(100), function_of(GAMMA, Random(1)), **best) as results:
            return len([each async for each in results])

    assert in_virtual_time(main) == 100


def test_a_capacity_with_more_failures_is_not_the_best() -> None:
    service = Planted("window", lambda _: (0.05, None), rate=100.0, retry=FixedDelay(2, 0.05))
    forecast = rehearse(sampled(service, 1), 1_000, capacity=[4, 100])
    assert forecast.rows[1].seconds < forecast.rows[0].seconds
    assert forecast.best_row.capacity == 4


@pytest.mark.variation
@pytest.mark.parametrize("seed", thorough_except([1], [1, 2, 3, 4]))
def test_chance_in_the_number_of_failures_decides_nothing(seed: int) -> None:
    def draw(random: Random) -> tuple[float, Exception | None]:
        return random.gammavariate(3.0, 0.02), BusyError(500) if random.random() < 0.3 else None

    taken = sampled(Planted("failing", draw, retry=FixedDelay(3, 0.2)), seed)
    assert rehearse(taken, 4_000, capacity=[15, 50, 150]).best_row.capacity == 150


def test_without_a_capacity_shares_of_the_load_are_compared(plain: Forecast) -> None:
    assert [row.capacity for row in plain.rows] == [15, 37, 75, 150]


def test_a_capacity_that_is_found_takes_longer_than_one_that_is_given() -> None:
    taken = sampled(EVENLY, 1)
    adaptive, fixed = (rehearse(taken, 1_000, capacity=20, gate=gate).rows[0] for gate in (Auto(2, 20), None))
    assert adaptive.seconds > fixed.seconds


# Displays


def test_a_forecast_is_a_table_of_80_columns(busy: Forecast) -> None:
    lines = str(busy).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[:2] == ["capacity", "time"]
    assert sum(line.lstrip().startswith("> ") for line in lines[1:5]) == 1
    assert lines[4].lstrip().startswith("* 400")
    assert "* The sample has not reached this load: a guess." in lines


def test_columns_without_numbers_are_left_out(plain: Forecast) -> None:
    head = str(plain).splitlines()[0].split()
    assert head == ["capacity", "time", "90", "%", "p50", "p99", "calls"]


def test_a_plot_is_a_document(busy: Forecast) -> None:
    drawing = ET.fromstring(busy.plot())
    assert len([each for each in drawing.iter() if each.get("class") in {"bar", "guess"}]) == 8


def test_a_notebook_shows_the_plot_and_the_table(busy: Forecast) -> None:
    html = ET.fromstring(busy._repr_html_())
    assert html.find("{http://www.w3.org/2000/svg}svg") is not None
    assert [each.text for each in html.findall("pre")] == [str(busy)]


# Invalid input


class Weighted(Gate):
    weight = staticmethod(lambda _: 1.0)

    def delay(self, now: float, weight: float) -> float:
        return 0.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sample": [1]}, TypeError, r"sample must be a Sample, made by record\(\), got \[1\]"),
        ({"elements": 0}, ValueError, "elements must be at least 1, got 0"),
        ({"capacity": [20, 0]}, ValueError, "capacity must be at least 1, got 0"),
        ({"capacity": {20}}, TypeError, r"capacity must be a whole number, got \{20\}"),
        ({"capacity": "auto"}, TypeError, r"capacity must be .*, got 'auto': .* give gate=Auto\(\)"),
        ({"buffer": 5, "capacity": 20}, ValueError, "buffer must be at least the capacity, 20, got 5"),
        ({"mode": "keyed"}, ValueError, 'mode must be "ordered" or "unordered", got .keyed.'),
        ({"gate": PerKey(RateLimit(1.0), key=str)}, ValueError, "gate must have no PerKey"),
        ({"gate": Weighted()}, ValueError, r"gate must have no weight, because the sample has none"),
        ({"slower": 0}, ValueError, "slower must be a finite factor above 0, got 0"),
        ({"unseen": 0.5}, TypeError, r"unseen must be a pair \(share of calls, seconds\), got 0.5"),
        ({"unseen": (2, 1.0)}, ValueError, r"unseen\[0\] must be a share from 0 to 1, got 2"),
        ({"retry": 3}, TypeError, r"retry must be a RetryStrategy such as FixedDelay\(3, 1.0\), got 3"),
        ({"timeout": -1.0}, ValueError, "timeout must be seconds, not negative"),
    ],
)
def test_an_invalid_argument_is_refused(
    sample: Sample, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        rehearse(**{"sample": sample, "elements": 100, **arguments})


def test_a_sample_without_an_answer_is_refused_with_its_outcomes_and_the_last_error() -> None:
    service = Planted("down", lambda _: (0.1, ConnectionError("down")))
    message = (
        r"have a call that was answered, got 200 calls .* 200 failed, the last with ConnectionError\('down'\)\. Rep"
    )
    with pytest.raises(ValueError, match=message):
        rehearse(sampled(service, 1), 100)


def test_calls_that_were_cut_time_out_and_need_a_finite_timeout() -> None:
    taken = sampled(BY_NAME["2 % stragglers"], 3, timeout=0.5)
    forecast = rehearse(taken, 10_000, capacity=50)
    assert forecast.rows[0].timed_out == pytest.approx(200, abs=150)
    assert any("exceeded a timeout" in each for each in forecast.assumptions)
    with pytest.raises(ValueError, match="timeout must be finite, got inf"):
        rehearse(taken, 10_000, timeout=float("inf"))


def test_one_call_is_a_sample() -> None:
    taken = Sample((RecordedCall(0.0, 0.1, "answered", 0.0, 1),), 1, (), 5.0)
    assert rehearse(taken, 10).rows[0].seconds == pytest.approx(1.0)


def test_calls_that_take_no_time_are_a_sample() -> None:
    taken = Sample(tuple(RecordedCall(0.0, 0.0, "answered", 0.0, load) for load in range(1, 21)), 20, (), 5.0)
    forecast = rehearse(taken, 100)
    assert forecast.rows[0].seconds == 0.0
    assert str(forecast)
    assert forecast.plot()


def test_a_sample_can_be_pickled(sample: Sample) -> None:
    assert pickle.loads(pickle.dumps(sample)) == sample


def test_unseen_calls_take_the_time_given_even_if_the_others_are_slower() -> None:
    forecast = rehearse(sampled(EVENLY, 1), 1_000, capacity=10, slower=2.0, unseen=(1.0, 5.0))
    assert forecast.rows[0].seconds == pytest.approx(500.0)
    assert "What if: all calls take 2 times as long." in forecast.assumptions
    assert "What if: 1 of the calls take 5 s." in forecast.assumptions
