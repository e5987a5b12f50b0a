"""The model of a service against closed forms: what is fitted to a sample whose distribution is known exactly."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log
from random import Random
from statistics import fmean

import pytest

from trio_asyncio_io.rehearsal import RecordedCall, Sample
from trio_asyncio_io.rehearsal._service import Service, Tail, fit

SIZE = 400
ANSWER = (1.0, RecordedCall(0.0, 1.0, "answered", weight=1.0, load=1))


class Luck(Random):
    """Always the same random number."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self._number = number

    def random(self) -> float:
        return self._number


def levels(size: int = SIZE) -> list[float]:
    """The levels of equally likely quantiles."""
    return [(number + 0.5) / size for number in range(size)]


def answered(start: float, seconds: float, load: int = 1) -> RecordedCall:
    return RecordedCall(start, seconds, "answered", weight=1.0, load=load)


def fitted(seconds: Sequence[float]) -> Service:
    """The model of a service whose calls took these times, one after the other."""
    return fit(sample_of([answered(100.0 * number, each) for number, each in enumerate(seconds)]))


def sample_of(calls: Sequence[RecordedCall]) -> Sample:
    return Sample(calls, len(calls), (), inf)


# Tails


@pytest.mark.parametrize("shape", [0.0, 0.2, -0.2])
def test_a_tail_is_drawn_by_the_quantiles_of_its_distribution(shape: float) -> None:
    tail, chances = Tail(2.0, 0.5, shape), (0.0, 0.5, 0.99)
    rests = [1 - level for level in chances]
    expected = [-0.5 * log(rest) if not shape else 0.5 * (rest**-shape - 1) / shape for rest in rests]
    assert [tail.draw(Luck(level)) - 2.0 for level in chances] == pytest.approx(expected)


def test_a_heavy_tail_is_the_pareto_distribution_of_the_sample() -> None:
    service = fitted([0.1 * (1 - level) ** (-1 / 1.3) for level in levels()])
    assert service.tail is not None
    assert service.tail.shape == pytest.approx(1 / 1.3, rel=0.05)
    for level in (0.0, 0.5, 0.9):  # x above the threshold has the probability (threshold / x) ** (1 / shape)
        assert service.tail.draw(Luck(level)) == pytest.approx(service.tail.above * (1 - level) ** -service.tail.shape)


def test_a_tail_without_moments_is_limited_to_one_that_has_a_mean() -> None:
    service = fitted([0.1 * (1 - level) ** -1.5 for level in levels()])
    assert service.tail is not None
    assert service.tail.shape == 0.95


def test_an_exponential_tail_has_no_shape_and_its_own_mean() -> None:
    service = fitted([-0.2 * log(1 - level) for level in levels()])
    assert service.tail is not None
    assert service.tail.shape == pytest.approx(0.0, abs=0.05)
    assert service.tail.scale / (1 - service.tail.shape) == pytest.approx(0.2, rel=0.05)


def test_a_tail_has_the_mean_of_the_longest_tenth() -> None:
    seconds = [1.0 + level**6 for level in levels()]
    service = fitted(seconds)
    assert service.tail is not None
    longest = sorted(seconds)[-SIZE // 10 :]
    assert service.tail.above == pytest.approx(sorted(seconds)[-SIZE // 10 - 1])
    mean = service.tail.scale / (1 - service.tail.shape)
    assert service.tail.above + mean == pytest.approx(fmean(longest))


def test_the_shape_of_a_light_tail_is_limited() -> None:
    service = fitted([*levels(360), *[1.0] * 39, 1.9])
    assert service.tail is not None
    assert service.tail.shape == 0.9


def test_a_tail_that_ends_has_a_negative_shape() -> None:
    service = fitted([1.0 + level for level in levels()])  # uniform: a shape of -1, limited
    assert service.tail is not None
    assert service.tail.shape == -0.2


# Kinds of calls


@pytest.mark.parametrize("slow", [1, 6, 20])
def test_slow_calls_of_their_own_are_counted(slow: int) -> None:
    assert fitted([*(0.1 + 0.05 * level for level in levels(SIZE - slow)), *[1.0] * slow]).apart == slow


def test_few_slow_calls_have_no_distribution_of_their_own() -> None:
    service = fitted([*(0.1 + 0.05 * level for level in levels(SIZE - 6)), *[1.0] * 6])
    assert service.tail is None


@pytest.mark.parametrize("scale", [0.05, 1.0])
def test_the_calls_of_one_distribution_are_one_kind(scale: float) -> None:
    assert fitted([-scale * log(1 - level) for level in levels()]).apart == 0


def test_calls_less_than_twice_as_long_are_no_kind_of_their_own() -> None:
    assert fitted([*[1.0] * 100, *[1.9] * 5]).apart == 0
    assert fitted([*[1.0] * 100, *[2.1] * 5]).apart == 5


# Servers


@pytest.mark.parametrize("servers", [1, 7, 30])
def test_the_number_of_servers_is_exact_without_noise(servers: int) -> None:
    """Bursts of calls that take 0.1 s each in a server, and wait for one in the order in which they start."""
    sizes = Random(1).choices(range(1, 3 * servers + 3), k=40)
    bursts = ((10.0 * number, size) for number, size in enumerate(sizes))
    service = fit(
        sample_of(
            [answered(start, 0.1 * (1 + place // servers), size) for start, size in bursts for place in range(size)]
        )
    )
    assert service.servers == servers
    assert {each for each, _ in service.admitted} == {0.1}


def test_calls_wait_for_a_server_in_the_order_in_which_they_start() -> None:
    begin = Service(admitted=[ANSWER], servers=2).open(Random(1))
    assert [begin(0.0, inf)[0] for _ in range(4)] == [1.0, 1.0, 2.0, 2.0]
    assert begin(5.0, inf)[0] == 1.0


def test_a_call_that_is_cut_leaves_the_server_or_the_line() -> None:
    begin = Service(admitted=[ANSWER], servers=1).open(Random(1))
    assert begin(0.0, 0.5)[0] == 1.0  # the caller cuts it: the server is free at 0.5
    assert begin(0.0, 2.0)[0] == 1.5
    assert begin(0.0, 1.0)[0] == inf  # no server until 1.5
    assert begin(0.0, 9.0)[0] == 2.5


def test_what_if_calls_take_longer_and_some_are_not_in_the_sample() -> None:
    begin = Service(admitted=[ANSWER], slower=2.0, unseen=(0.25, 30.0)).open(Random(1))
    drawn = [begin(0.0, inf)[0] for _ in range(4_000)]
    assert set(drawn) == {2.0, 30.0}
    assert drawn.count(30.0) == pytest.approx(1_000, rel=0.1)
