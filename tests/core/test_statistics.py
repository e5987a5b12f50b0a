"""The account: counts that the ledger writes to, and the frozen views of them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from trio_asyncio_io import Histogram, Statistics, Totals
from trio_asyncio_io._account.statistics import Counters, Counts
from trio_asyncio_io._core.ledger import Ledger
from trio_asyncio_io._core.queue import InputOrder

VALUES: dict[type, Any] = {int: 3, float: 0.5, str: "closed", dict: {"RateLimit": 2.0}, Histogram: Histogram.of([1.0])}


@pytest.mark.parametrize("kind", [Statistics, Totals])
def test_an_account_is_frozen(kind: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        kind().running = 1


@pytest.mark.parametrize("kind", [Statistics, Totals])
def test_an_unpickled_account_equals_the_original(kind: Any) -> None:
    account = kind(emitted=3, head_wait_seconds=0.5)
    assert pickle.loads(pickle.dumps(account)) == account


# These follow from the numbers of elements that have arrived and are gone, and from the gates
DERIVED = {"buffered", "peak_buffered", "finding"}


@pytest.mark.parametrize("name", [each.name for each in fields(Counts) if each.name not in DERIVED])
def test_a_count_that_the_ledger_writes_is_in_all_views(name: str) -> None:
    """A new count is one edit: its declaration."""
    ledger = Ledger(InputOrder(), 1)
    value = VALUES[type(getattr(ledger.counters, name))]
    setattr(ledger.counters, name, value)
    views = [ledger.statistics(), ledger.totals(lambda: (1.0, 1.0))]
    setattr(ledger.counters, name, type(value)())
    assert [getattr(view, name) for view in views] == [value, value]


@pytest.mark.parametrize("kind", [Statistics, Totals])
def test_sums_and_differences_have_every_field(kind: Any) -> None:
    full = kind(**{each.name: VALUES[type(getattr(kind(), each.name))] for each in fields(kind)})
    total = full + full
    for each in fields(kind):
        one, two = getattr(full, each.name), getattr(total, each.name)
        if each.name in {*kind.HIGHEST, *kind.LATEST}:
            assert two == one
        elif isinstance(one, Mapping):
            assert two == {"RateLimit": 4.0}
        else:
            assert two == one + one
    rest = total - full
    for each in fields(kind):
        kept = total if each.name in kind.CONSTANT else full
        assert getattr(rest, each.name) == getattr(kept, each.name), each.name


@pytest.mark.parametrize("name", ["refusal", "finding"])
def test_of_several_texts_the_last_one_counts(name: str) -> None:
    first, second, nothing = (Totals(**{name: text}) for text in ("9 at once", "12 at once", ""))  # type: ignore[arg-type]
    assert [getattr(total, name) for total in (first + second, second + first, first + nothing, nothing + first)] == [
        "12 at once",
        "9 at once",
        "9 at once",
        "9 at once",
    ]
    assert getattr(second - first, name) == "12 at once"


def test_counters_have_no_dictionary_and_refuse_unknown_names() -> None:
    counters: Any = Counters()
    counters.running += 1
    assert counters.running == 1
    assert not hasattr(counters, "__dict__")
    with pytest.raises(AttributeError):
        counters.runing = 1


def test_the_repr_shows_what_is_not_zero_and_the_quantiles_of_histograms() -> None:
    assert repr(Statistics()) == "Statistics()"
    statistics = Statistics(emitted=3, latency=Histogram.of([1.0] * 98 + [4.0] * 2), refusal="closed")
    assert repr(statistics) == (
        "Statistics(emitted=3, refusal='closed', latency=Histogram(100 durations, p50 1.03 s, p99 4.12 s))"
    )
    assert repr(Totals(completed=2, busy=1.5)) == "Totals(completed=2, busy=1.5)"
