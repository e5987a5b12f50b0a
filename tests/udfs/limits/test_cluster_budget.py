"""The arguments of a ClusterBudget."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict
from math import inf, nan
from typing import Any

import pytest

from udfs import ClusterBudget
from udfs._limits.budgets import BudgetRequest
from udfs._limits.cluster_limits import LeasedLimit, ServerAddress
from udfs._limits.signed_lines import MAX_BYTES


@pytest.mark.parametrize("amount", [nan, inf, -0.1, 10**400], ids=["nan", "inf", "-0.1", "10**400"])
def test_an_amount_is_finite_and_not_negative(amount: float) -> None:
    with pytest.raises(ValueError, match="amount must be finite and not negative, got"):
        ClusterBudget(amount)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"amount": "50"}, "amount must be a number, got '50'"),
        ({"amount": True}, "amount must be a number, got True"),
        ({"weight": 0.1}, "weight must be callable, got 0.1"),
        ({"name": ""}, "name must be a text that is not empty"),
        ({"name": "a", "path": 5}, "path must be the path of a file, got 5"),
        ({"port": "7077"}, "port must be a whole number"),
        ({"give_up": None}, "give_up must be a number of seconds"),
    ],
)
def test_an_argument_of_another_type_is_an_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ClusterBudget(**{"amount": 50.0, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": "share"}, r'by must be "lease" or a URL such as "redis://host:6379/0", got \'share\''),
        ({"path": "budgets"}, "a budget that outlives the driver needs a name"),
        ({"by": "redis://host/0"}, "a budget that outlives the driver needs a name"),
        ({"by": "redis://host/0", "name": "a", "path": "budgets"}, "path='budgets' needs by=\"lease\""),
        ({"by": "redis://host/0", "name": "a", "port": 7077}, 'port=7077 needs by="lease"'),
    ],
)
def test_arguments_that_exclude_each_other_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ClusterBudget(50.0, **arguments)


def test_each_object_without_a_name_has_a_budget_of_its_own() -> None:
    assert ClusterBudget(50.0).name != ClusterBudget(50.0).name


def test_it_pickles_with_its_name() -> None:
    given = ClusterBudget(50.0, weight=abs)
    assert pickle.loads(pickle.dumps(given)) == given


def test_tasks_whose_weights_differ_share_a_lease() -> None:
    """Each task unpickles a function of its own."""
    address = ServerAddress("host", 1, "secret")
    one, two = (LeasedLimit(ClusterBudget(5.0, weight=lambda _: 1, name="a"), address) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)


def test_a_password_is_not_shown() -> None:
    given = ClusterBudget(5.0, by="redis://user:hidden@host/0", name="a")
    assert "hidden" not in repr(given) + LeasedLimit(given).source + repr(LeasedLimit(given))


def test_the_advice_names_the_budget() -> None:
    leased = LeasedLimit(ClusterBudget(5.0), ServerAddress("host", 7077, "hidden"))
    assert "ClusterBudget(..., port=) the port" in leased.advice


def test_the_longest_name_and_numbers_fit_into_a_line() -> None:
    name, third = "\N{GRINNING FACE}" * 200, -1 / 3 * 1e-300
    request = BudgetRequest(str(ClusterBudget(7, name=name).name), third, "f" * 40, 10**15, third, third, third, third)
    assert len(json.dumps(asdict(request))) < MAX_BYTES - 100
