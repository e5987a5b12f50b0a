"""The public class `ClusterRate`: its arguments."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest

from udfs import ClusterRate
from udfs._rate.cluster_rate import as_cluster_rate


@pytest.mark.parametrize("rate", [True, "500", None])
def test_a_rate_must_be_a_number(rate: Any) -> None:
    with pytest.raises(TypeError, match=r"cluster_rate must be calls per second as a number, .* got"):
        as_cluster_rate(rate)


@pytest.mark.parametrize("rate", [0, -1.0, math.inf, math.nan])
def test_a_rate_must_be_above_0_and_finite(rate: float) -> None:
    with pytest.raises(ValueError, match="cluster_rate must be calls per second above 0 and finite, got"):
        ClusterRate(rate)


def test_a_number_is_a_rate_by_share() -> None:
    assert as_cluster_rate(500).by == "share"
    given = ClusterRate(7, by="lease")
    assert as_cluster_rate(given) is given


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
    with pytest.raises(ValueError, match="got 'http'") as caught:
        ClusterRate(7, by="http" + by.removeprefix("rediss").removeprefix("redis"))
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("name", ["", 7])
def test_a_name_is_a_text(name: Any) -> None:
    with pytest.raises(TypeError, match="name must be a text that is not empty"):
        ClusterRate(7, by="lease", name=name)
