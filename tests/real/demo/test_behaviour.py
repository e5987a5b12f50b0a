"""The lookup service's decisions, without any delay."""

from __future__ import annotations

import math
from statistics import mean, median
from typing import Any

import pytest

from udfs.demo._behaviour import Behaviour, Decision

MANY = 5_000


def decisions(behaviour: Behaviour) -> list[Decision]:
    return [behaviour.decide(f"/planes/N{number}", 1) for number in range(MANY)]


def share_within(observed: int, share: float) -> bool:
    """Whether a count of `MANY` is within four standard deviations of its share."""
    return abs(observed - MANY * share) <= 4 * math.sqrt(MANY * share * (1 - share))


def test_latencies_have_their_mean_and_a_median_of_six_tenths_of_it() -> None:
    seconds = [decision.seconds for decision in decisions(Behaviour(straggler_share=0))]
    error_of_the_mean = 0.020 * math.sqrt(1 / 0.36 - 1) / math.sqrt(MANY)
    assert mean(seconds) == pytest.approx(0.020, abs=4 * error_of_the_mean)
    assert median(seconds) == pytest.approx(0.012, rel=0.05)
    assert min(seconds) > 0


def test_one_request_in_a_hundred_is_a_straggler() -> None:
    usual, with_stragglers = decisions(Behaviour(straggler_share=0)), decisions(Behaviour())
    stragglers = [b.seconds for a, b in zip(usual, with_stragglers, strict=True) if a != b]
    assert share_within(len(stragglers), 0.01)
    assert 0.5 <= min(stragglers) < 0.55
    assert 1.45 < max(stragglers) <= 1.5


def test_the_mean_with_stragglers_is_the_expected_one() -> None:
    behaviour = Behaviour()
    assert behaviour.expected_seconds == pytest.approx(0.99 * 0.020 + 0.01 * 1.0)
    seconds = [decision.seconds for decision in decisions(behaviour)]
    assert mean(seconds) == pytest.approx(behaviour.expected_seconds, rel=0.1)


def test_one_response_in_two_hundred_is_an_error() -> None:
    assert share_within(sum(decision.fails for decision in decisions(Behaviour())), 0.005)


def test_a_path_that_failed_is_as_likely_to_fail_again() -> None:
    behaviour = Behaviour(error_share=0.5)
    failed = [path for path in map(str, range(MANY)) if behaviour.decide(path, 1).fails]
    again = sum(behaviour.decide(path, 2).fails for path in failed)
    assert again / len(failed) == pytest.approx(0.5, abs=0.02)


def test_the_same_seed_gives_the_same_decisions() -> None:
    assert decisions(Behaviour(seed=7)) == decisions(Behaviour(seed=7))


def test_decisions_are_the_same_on_every_machine() -> None:
    seconds, fails = Behaviour(seed=7).decide("/planes/N14228", 1)
    assert (round(seconds, 6), fails) == (0.013463, False)


def test_another_seed_or_number_gives_another_decision() -> None:
    first = Behaviour(seed=7).decide("/planes/N14228", 1)
    assert first != Behaviour(seed=8).decide("/planes/N14228", 1)
    assert first != Behaviour(seed=7).decide("/planes/N14228", 2)


def test_a_mean_of_zero_has_no_delay() -> None:
    assert Behaviour(mean_seconds=0, straggler_share=0).decide("/", 1).seconds == 0


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_shares_of_zero_and_one_are_exact(share: float) -> None:
    behaviour = Behaviour(error_share=share, straggler_share=share, straggler_seconds=(9, 9))
    assert {decision.fails for decision in decisions(behaviour)} == {bool(share)}
    assert {decision.seconds == 9 for decision in decisions(behaviour)} == {bool(share)}


def test_a_behaviour_survives_the_command_line() -> None:
    behaviour = Behaviour(0.001, 0.5, (1, 2), 0.25, 42)
    assert Behaviour.from_json(behaviour.to_json()) == behaviour
    assert Behaviour.from_json("{}") == Behaviour()


@pytest.mark.parametrize(
    "bad",
    [
        {"mean_seconds": -0.1},
        {"mean_seconds": math.inf},
        {"mean_seconds": math.nan},
        {"straggler_share": 1.1},
        {"straggler_share": math.nan},
        {"straggler_seconds": (2.0, 1.0)},
        {"straggler_seconds": (-1.0, 1.0)},
        {"straggler_seconds": (1.0, math.inf)},
        {"error_share": -0.1},
    ],
)
def test_an_argument_out_of_range_is_named(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(bad))} must be .*, got "):
        Behaviour(**bad)
