"""Rounds of measurements alternate between the contenders."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks._rounds import Rounds, alternate


def contender(name: str, seen: list[str]) -> Callable[[], str]:
    def run() -> str:
        seen.append(name)
        return name * len(seen)

    return run


def test_each_round_has_every_contender_and_starts_with_another_one() -> None:
    seen: list[str] = []
    alternate({name: contender(name, seen) for name in "abc"}, 3, lambda: None, warm_up=False)
    assert "".join(seen) == "abcbcacab"


def test_a_warm_up_round_comes_first_and_is_not_counted() -> None:
    seen: list[str] = []
    found = alternate({name: contender(name, seen) for name in "ab"}, 2, lambda: None)
    assert len(seen) == 6
    assert found == {"a": ["a" * 3, "a" * 6], "b": ["b" * 4, "b" * 5]}


def test_a_ratio_compares_times_of_the_same_round() -> None:
    rounds = Rounds({"base": [1.0, 10.0, 2.0], "other": [2.0, 20.0, 8.0]})
    assert rounds.ratios("other") == [2.0, 2.0, 4.0]
    assert rounds.ratio("other") == 2.0
    assert rounds.spread("other") == (2.0, 3.0)
    assert rounds.ratio("base", "other") == 0.5
