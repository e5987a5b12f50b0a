"""The public class `ClusterRate`: its arguments."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import asdict
from typing import Any

import pytest

from udfs import ClusterRate
from udfs._limits.cluster_limits import LeasedLimit, ServerAddress, as_cluster_rates
from udfs._limits.signed_lines import MAX_BYTES
from udfs._limits.tokens import Request


@pytest.mark.parametrize("rate", [True, "500", [None]])
def test_a_rate_must_be_a_number(rate: Any) -> None:
    with pytest.raises(TypeError, match=r"cluster_rate must be calls per second as a number, .* got"):
        as_cluster_rates(rate)


@pytest.mark.parametrize("rate", [0, -1.0, math.inf, math.nan])
def test_a_rate_must_be_above_0_and_finite(rate: float) -> None:
    with pytest.raises(ValueError, match="cluster_rate must be calls per second above 0 and finite, got"):
        ClusterRate(rate)


def test_a_number_is_a_rate_by_share() -> None:
    assert as_cluster_rates(500)[0].by == "share"
    given = ClusterRate(7, by="lease")
    assert as_cluster_rates(given) == (given,)


def test_a_list_has_several_rates() -> None:
    tokens = ClusterRate(7_000, weight=len)
    assert as_cluster_rates([tokens, ClusterRate(5, by="lease")])[0] is tokens
    assert [rate.rate for rate in as_cluster_rates((8, tokens))] == [8, 7_000]
    assert as_cluster_rates(None) == ()


def test_two_leased_rates_are_refused() -> None:
    with pytest.raises(ValueError, match=r'at most one leased rate, got .* Use by="share" for the others'):
        as_cluster_rates([ClusterRate(5, by="lease"), ClusterRate(7, by="redis://host/0")])


def test_a_rate_that_is_given_twice_is_refused() -> None:
    """Each call would count twice."""
    tokens = ClusterRate(7_000, weight=len, name="tokens")
    with pytest.raises(ValueError, match=r"two rates of one name, \['tokens', 'tokens'\]: give each once, and a name"):
        as_cluster_rates([tokens, tokens])


def test_a_weight_must_be_callable() -> None:
    with pytest.raises(TypeError, match=r"weight must be callable, got 4\.0"):
        ClusterRate(7, weight=4.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("by", ["lease", "redis://:hidden@host/0"])
def test_a_leased_rate_has_no_weight(by: str) -> None:
    with pytest.raises(ValueError, match=r'weight needs by="share", got by=') as caught:
        ClusterRate(7, by=by, weight=len)
    assert "hidden" not in str(caught.value)


def test_objects_without_a_name_have_limits_of_their_own_also_as_copies() -> None:
    given = ClusterRate(7, by="lease")
    assert given.name != ClusterRate(7, by="lease").name
    assert pickle.loads(pickle.dumps(given)) == given


def test_another_way_to_share_is_refused() -> None:
    with pytest.raises(ValueError, match=r'by must be "share", "lease" or a URL .*, got \'driver\''):
        ClusterRate(7, by="driver")


@pytest.mark.parametrize("by", ["redis://user:hidden@host/0", "rediss://host/0?password=hidden"])
def test_a_password_is_not_shown(by: str) -> None:
    assert "hidden" not in repr(ClusterRate(7, by=by))
    with pytest.raises(ValueError, match="got 'http://") as caught:
        ClusterRate(7, by="http" + by.removeprefix("rediss").removeprefix("redis"))
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("name", ["", 7])
def test_a_name_is_a_text(name: Any) -> None:
    with pytest.raises(TypeError, match="name must be a text that is not empty"):
        ClusterRate(7, by="lease", name=name)


@pytest.mark.parametrize("name", ["x" * 201, "two\nlines", "\ud800"])
def test_a_name_fits_into_a_message(name: str) -> None:
    with pytest.raises(ValueError, match="name must have at most 200 characters, all of them printable"):
        ClusterRate(7, by="lease", name=name)


def test_the_longest_name_and_numbers_fit_into_a_line() -> None:
    name = "\N{GRINNING FACE}" * 200
    request = Request(ClusterRate(7, name=name).name, 1 / 3 * 1e-300, 10_000, 1 / 3)
    assert len(json.dumps(asdict(request))) < MAX_BYTES - 100


@pytest.mark.parametrize("port", [True, 7077.0, "7077"])
def test_a_port_is_a_whole_number(port: Any) -> None:
    with pytest.raises(TypeError, match="port must be a whole number, got"):
        ClusterRate(7, by="lease", port=port)


@pytest.mark.parametrize("port", [-1, 0, 65_536])
def test_a_port_has_a_range(port: int) -> None:
    with pytest.raises(ValueError, match=r"port must be at (least 1|most 65,535), got"):
        ClusterRate(7, by="lease", port=port)


@pytest.mark.parametrize("by", ["share", "redis://host:6379/0"])
def test_a_port_is_refused_if_the_driver_does_not_listen(by: str) -> None:
    with pytest.raises(ValueError, match='port=7077 needs by="lease", got by='):
        ClusterRate(7, by=by, port=7077)


@pytest.mark.parametrize("seconds", [True, "300", None])
def test_give_up_is_a_number(seconds: Any) -> None:
    with pytest.raises(TypeError, match="give_up must be a number of seconds, got"):
        ClusterRate(7, by="lease", give_up=seconds)


@pytest.mark.parametrize("seconds", [0, -1.0, math.nan])
def test_give_up_is_above_0(seconds: float) -> None:
    with pytest.raises(ValueError, match="give_up must be above 0 seconds, got"):
        ClusterRate(7, by="lease", give_up=seconds)


def test_a_rate_may_wait_for_ever() -> None:
    assert ClusterRate(7, by="lease", give_up=math.inf).give_up == math.inf
    assert ClusterRate(7).give_up == 300.0


@pytest.mark.parametrize(
    ("by", "source"),
    [
        ("redis://user:hidden@host:6379/0", "the Redis at redis://***@host:6379/0"),
        ("rediss://host/0?password=hidden", "the Redis at rediss://host/0"),
        ("unix://:hidden@/run/redis.sock?db=1", "the Redis at unix://***@/run/redis.sock"),
    ],
)
def test_a_redis_is_named_without_its_password(by: str, source: str) -> None:
    assert LeasedLimit(ClusterRate(7, by=by)).source == source


def test_the_source_on_the_driver_is_named_by_its_address() -> None:
    rate = LeasedLimit(ClusterRate(7, by="lease"), ServerAddress("host", 7077, "hidden"))
    assert rate.source == "the driver at host:7077"
    assert "hidden" not in repr(rate)
