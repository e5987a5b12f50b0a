"""The public classes `ClusterRate` and `ClusterBudget`: their arguments."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import asdict
from typing import Any

import pytest

from udfs import ClusterBudget, ClusterRate
from udfs._limits.budgets import BudgetRequest
from udfs._limits.cluster_limits import LeasedLimit, ServerAddress, as_cluster_rates
from udfs._limits.rates import TokenRequest
from udfs._limits.signed_lines import MAX_BYTES

ADDRESS = ServerAddress("host", 7077, "hidden")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rate": 0}, ValueError, "cluster_rate must be calls per second above 0 and finite, got 0"),
        ({"rate": math.nan}, ValueError, "cluster_rate must be calls per second above 0 and finite, got nan"),
        ({"weight": 4.0}, TypeError, r"weight must be callable, got 4\.0"),
        ({"weight": len}, ValueError, "weight needs by=\"share\", got by='lease'"),
        ({"weight": len, "by": "redis://host/0"}, ValueError, 'weight needs by="share", got by=\'redis'),
        ({"by": "driver"}, ValueError, r'by must be "share", "lease" or a URL .*, got \'driver\''),
        ({"by": "http://host/0"}, ValueError, r'by must be "share", "lease" or a URL .*, got \'http://host'),
        ({"name": ""}, TypeError, "name must be a text that is not empty"),
        ({"name": 7}, TypeError, "name must be a text that is not empty"),
        ({"name": "x" * 201}, ValueError, "name must have at most 200 characters, all of them printable"),
        ({"name": "two\nlines"}, ValueError, "name must have at most 200 characters, all of them printable"),
        ({"name": "\ud800"}, ValueError, "name must have at most 200 characters, all of them printable"),
        ({"port": True}, TypeError, "port must be a whole number, got True"),
        ({"port": 0}, ValueError, "port must be at least 1, got 0"),
        ({"port": 65_536}, ValueError, "port must be at most 65,535, got 65,?536"),
        ({"port": 7077, "by": "share"}, ValueError, "port=7077 needs by=\"lease\", got by='share'"),
        ({"port": 7077, "by": "redis://host/0"}, ValueError, 'port=7077 needs by="lease", got by=\'redis'),
        ({"give_up": None}, TypeError, "give_up must be a number of seconds, got None"),
        ({"give_up": 0}, ValueError, "give_up must be above 0 seconds, got 0"),
    ],
    ids=repr,
)
def test_a_bad_argument_of_a_rate_is_refused_by_name(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ClusterRate(**{"rate": 7, "by": "lease", **arguments})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"amount": math.nan}, ValueError, "amount must be finite and not negative, got"),
        ({"amount": -0.1}, ValueError, "amount must be finite and not negative, got"),
        ({"amount": 10**400}, ValueError, "amount must be finite and not negative, got"),
        ({"amount": "50"}, TypeError, "amount must be a number, got '50'"),
        ({"weight": 0.1}, TypeError, "weight must be callable, got 0.1"),
        ({"name": ""}, TypeError, "name must be a text that is not empty"),
        ({"name": "a", "path": 5}, TypeError, "path must be the path of a file, got 5"),
        ({"port": "7077"}, TypeError, "port must be a whole number"),
        ({"give_up": None}, TypeError, "give_up must be a number of seconds"),
        ({"by": "share"}, ValueError, r'by must be "lease" or a URL such as "redis://host:6379/0", got \'share\''),
        ({"path": "budgets"}, ValueError, "a budget that outlives the driver needs a name"),
        ({"by": "redis://host/0"}, ValueError, "a budget that outlives the driver needs a name"),
        ({"by": "redis://host/0", "name": "a", "path": "b"}, ValueError, "path='b' needs by=\"lease\""),
        ({"by": "redis://host/0", "name": "a", "port": 7077}, ValueError, 'port=7077 needs by="lease"'),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_bad_argument_of_a_budget_is_refused_by_name(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ClusterBudget(**{"amount": 50.0, **arguments})


TOKENS = ClusterRate(7_000, weight=len, name="tokens")


@pytest.mark.parametrize(
    ("given", "rates"),
    [
        (None, []),
        (500, [(500, "share")]),
        (TOKENS, [(7_000, "share")]),
        ([8, TOKENS], [(8, "share"), (7_000, "share")]),
    ],
    ids=str,
)
def test_rates_may_be_given_as_a_number_an_object_or_a_list(given: Any, rates: list[tuple[float, str]]) -> None:
    assert [(each.rate, each.by) for each in as_cluster_rates(given)] == rates


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (True, TypeError, r"cluster_rate must be calls per second as a number, .* got True"),
        ("500", TypeError, r"cluster_rate must be calls per second as a number, .* got '500'"),
        ([None], TypeError, r"cluster_rate must be calls per second as a number, .* got None"),
        (
            [ClusterRate(5, by="lease"), ClusterRate(7, by="redis://host/0")],
            ValueError,
            r'at most one leased rate, got .* Use by="share" for the others',
        ),
        (  # each call would count twice
            [TOKENS, TOKENS],
            ValueError,
            r"two rates of one name, \['tokens', 'tokens'\]: give each once, and a name",
        ),
    ],
    ids=["bool", "text", "none", "two leases", "twice"],
)
def test_rates_that_do_not_fit_together_are_refused(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_cluster_rates(given)


@pytest.mark.parametrize("make", [lambda: ClusterRate(7, by="lease"), lambda: ClusterBudget(50.0, weight=abs)])
def test_each_object_without_a_name_has_a_limit_of_its_own_and_so_have_its_copies(make: Any) -> None:
    made = make()
    assert made.name != make().name
    assert pickle.loads(pickle.dumps(made)) == made


def test_tasks_whose_weights_differ_share_a_lease() -> None:
    """Each task unpickles a function of its own."""
    one, two = (LeasedLimit(ClusterBudget(5.0, weight=lambda _: 1, name="a"), ADDRESS) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)


@pytest.mark.parametrize("kind", [ClusterRate, ClusterBudget])
def test_the_longest_name_and_numbers_fit_into_a_line(kind: Any) -> None:
    name, third = kind(7, name="\N{GRINNING FACE}" * 200).name, -1 / 3 * 1e-300
    request: Any = TokenRequest(name, third, 10_000, third)
    if kind is ClusterBudget:
        request = BudgetRequest(name, third, "f" * 40, 10**15, third, third, third, third)
    assert len(json.dumps(asdict(request))) < MAX_BYTES - 100


def test_a_rate_may_wait_for_ever() -> None:
    assert ClusterRate(7, by="lease", give_up=math.inf).give_up == math.inf
    assert ClusterRate(7).give_up == 300.0


@pytest.mark.parametrize(
    ("by", "source"),
    [
        ("redis://user:hidden@host:6379/0", "the Redis at redis://***@host:6379/0"),
        ("rediss://host/0?password=hidden", "the Redis at rediss://host/0"),
        ("unix://:hidden@/run/redis.sock?db=1", "the Redis at unix://***@/run/redis.sock"),
        ("lease", "the driver at host:7077"),
    ],
)
def test_a_source_is_named_without_its_password(by: str, source: str) -> None:
    limit = LeasedLimit(ClusterBudget(7, by=by, name="a"), ADDRESS if by == "lease" else None)
    assert limit.source == source
    assert "hidden" not in repr(limit)


def test_the_advice_names_the_budget() -> None:
    assert "ClusterBudget(..., port=) the port" in LeasedLimit(ClusterBudget(5.0), ADDRESS).advice
