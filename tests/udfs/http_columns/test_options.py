"""HttpOptions: checks, and the settings of the tasks."""

from __future__ import annotations

import math
import pickle
from typing import Any, ClassVar

import pytest

from trio_asyncio_io import retry_after
from trio_asyncio_io.gates import Auto, CircuitBreaker
from udfs import ClusterBudget, ClusterRate
from udfs._limits.cluster_limits import LeasedLimit, TaskShare
from udfs._trio_thread.room import Room
from udfs.http_columns import http_get, http_request, register_http
from udfs.http_columns._options import HttpOptions
from udfs.http_columns._outcome import HostCapacity, HttpResponse, RetryableError


def test_only_equal_options_share_a_client() -> None:
    def digest(**options: Any) -> str:
        return HttpOptions(**options).settings().function.digest

    same = digest(headers={"a": "b", "c": "d"}, retry_statuses=[503, 429], capacity=7)
    assert digest(headers={"c": "d", "a": "b"}, retry_statuses=(429, 503, 429), capacity=9) == same
    assert digest(headers={"a": "b", "c": "other"}, retry_statuses=[503, 429]) != same
    assert digest() != digest(cache=60.0) != digest(cache=61.0)


def test_the_rate_limits_the_capacity_so_that_every_attempt_can_start_in_time() -> None:
    """Four attempts wait for 5 s each, and 5 s of the 25 are left for the calls."""
    assert HttpOptions(rate=10.0, timeout=25.0).settings().options.capacity == 50
    assert HttpOptions(rate=10.0, timeout=25.0, retries=0).settings().options.capacity == 125
    assert HttpOptions(rate=0.1, timeout=25.0).settings().options.capacity == 1
    assert HttpOptions(rate=0.001, timeout=math.inf).settings().options.capacity == 800


def gates_per_host(**options: Any) -> list[str]:
    settings = HttpOptions(timeout=25.0, **options).settings()
    assert settings.options.capacity == settings.options.gates[0].gates[0].most_at_once
    return [repr(gate).replace("HostCapacity", "Auto") for gate in settings.options.gates[0].gates]


def test_a_capacity_that_is_found_is_that_of_each_host() -> None:
    assert gates_per_host() == gates_per_host(capacity="auto") == [repr(Auto())]
    assert gates_per_host(capacity=Auto(20, 50)) == [repr(Auto(20, 50))]
    assert gates_per_host(capacity="auto", per_host=None) == [repr(Auto())]
    breaker = CircuitBreaker()
    assert gates_per_host(capacity="auto", per_host=breaker) == [repr(Auto()), repr(breaker)]
    assert gates_per_host(capacity="auto", per_host=[breaker]) == [repr(Auto()), repr(breaker)]


def test_a_capacity_that_is_given_is_the_first_limit_of_each_host() -> None:
    assert gates_per_host(capacity=40) == [repr(Auto(40, 40))]
    assert gates_per_host(capacity=80, rate=10.0) == [repr(Auto(50, 50))]


def test_so_is_a_share_of_the_clusters_capacity() -> None:
    options = HttpOptions(cluster_capacity=40).settings(Session()).options
    assert (options.capacity, options.gates[0].gates[0].configuration()) == (20, Auto(20, 20).configuration())


@pytest.mark.parametrize("auto", [Auto(20, 50, give_up=9.0, name="api"), Auto(classify=str.title)])
def test_the_gate_of_a_host_is_sent_with_its_arguments(auto: Auto) -> None:
    gate = HostCapacity.of(auto)
    copy = pickle.loads(pickle.dumps(gate))
    assert (type(copy), copy.configuration()) == (HostCapacity, auto.configuration())
    assert (copy.classify, copy.name, copy.label) == (auto.classify, auto.name, auto.label)


@pytest.mark.parametrize(
    ("options", "rows"), [({}, 6), ({"capacity": Auto(20, 50)}, 20), ({"capacity": 40}, 40)], ids=repr
)
def test_large_bodies_lower_only_a_capacity_that_is_found(options: dict[str, Any], rows: int) -> None:
    room = Room(HttpOptions(**options).settings())
    for _ in range(16):
        room.end(b"x" * 10 * 2**20)
    assert room.size == rows


def test_the_rate_limits_the_capacity_that_is_found() -> None:
    assert gates_per_host(capacity="auto", rate=10.0) == [repr(Auto(most=50))]
    assert gates_per_host(capacity=Auto(80), rate=10.0) == [repr(Auto(50, 50))]


class Session:
    """A session with two slots."""

    conf: ClassVar = {"spark.master": "local[2]"}


def test_each_task_has_its_share_of_a_rate_for_the_cluster() -> None:
    assert HttpOptions(cluster_rate=21).settings(Session()).limits == (TaskShare(10),)
    assert HttpOptions().settings(Session()).limits == ()


def test_a_limit_of_the_bytes_that_a_task_holds_reaches_the_task() -> None:
    assert HttpOptions(buffer_bytes=1_000).settings(Session()).buffer_bytes == 1_000
    assert HttpOptions().settings(Session()).buffer_bytes == 64 * 1024 * 1024


def test_the_requests_of_a_column_have_no_weight() -> None:
    with pytest.raises(ValueError, match="cluster_rate must have no weight in an HTTP column: omit weight="):
        HttpOptions(cluster_rate=ClusterRate(21, weight=len))


def test_a_column_has_a_part_of_a_budget_for_the_cluster() -> None:
    budget = ClusterBudget(100, by="redis://192.0.2.1/0", name="requests")
    assert HttpOptions(cluster_budget=budget).settings(Session()).limits == (LeasedLimit(budget),)
    assert HttpOptions(cluster_budget=budget).settings().limits == ()


@pytest.mark.parametrize(
    ("budget", "error", "message"),
    [
        (100, TypeError, r"cluster_budget must be a ClusterBudget such as ClusterBudget\(50\.0\), got 100"),
        (ClusterBudget(1, weight=len), ValueError, "cluster_budget must have no weight in an HTTP column"),
    ],
)
def test_the_budget_of_a_column_is_checked(budget: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        HttpOptions(cluster_budget=budget)


def test_a_backoff_is_at_least_the_retry_after() -> None:
    strategy = HttpOptions().settings().options.retry
    assert strategy is not None
    refused = RetryableError(HttpResponse(503, {"retry-after": "7"}, ""))
    assert retry_after(refused) == 7.0
    assert strategy.wait(1, 0.5, refused) == 7.0
    assert strategy.wait(1, 0.5, RetryableError(HttpResponse(503, {}, ""))) < 1.0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"timeout": "30"}, TypeError, "timeout must be seconds"),
        ({"capacity": 0}, ValueError, "capacity must be at least 1, got 0"),
        ({"capacity": 100, "buffer": 10}, ValueError, "buffer must be at least the capacity, 100, got 10"),
        ({"buffer_bytes": 0}, ValueError, "buffer_bytes must be at least 1, got 0"),
        ({"retries": -1}, ValueError, "retries must be at least 0.* got -1"),
        ({"retries": True}, TypeError, "retries must be a whole number, got True"),
        ({"retry_statuses": 503}, TypeError, "retry_statuses must be HTTP statuses .* got 503"),
        ({"retry_statuses": [5, 503]}, ValueError, r"retry_statuses must be HTTP statuses .* got \(5, 503\)"),
        ({"rate": 0}, ValueError, "rate must be calls per second above 0 and finite, got 0"),
        ({"rate": "fast"}, TypeError, "rate must be calls per second as a number, or None, got 'fast'"),
        ({"rate": 0.05}, ValueError, "starts a call every 20 s, .* give a timeout of at least 40 s"),
        ({"cache": 0.0}, ValueError, "cache must be seconds above 0, got 0.0"),
        ({"cache": True}, TypeError, "cache must be seconds as a number, or None, got True"),
        ({"max_body_bytes": 0}, ValueError, "max_body_bytes must be at least 1, got 0"),
        ({"max_body_bytes": 2**40}, ValueError, "max_body_bytes must be at most 536,870,912"),
        ({"follow_redirects": 1}, TypeError, "follow_redirects must be True or False, got 1"),
        ({"only_public": 1}, TypeError, "only_public must be True or False, got 1"),
        ({"allowed_hosts": "example.org"}, TypeError, "allowed_hosts must be a list of hosts .* got 'example.org'"),
        ({"allowed_hosts": []}, TypeError, r"allowed_hosts must be one or more hosts, each of them a str, got \[\]"),
        ({"allowed_hosts": [b"h"]}, TypeError, "allowed_hosts must be one or more hosts"),
        ({"allowed_hosts": ["a/b"]}, ValueError, "allowed_hosts must be hosts such as .* got 'a/b'"),
        ({"time_out": 5.0}, TypeError, "got an unexpected keyword argument 'time_out': did you mean 'timeout'?"),
    ],
)
def test_a_bad_option_is_refused_by_name(options: dict[str, Any], error: type[Exception], message: str) -> None:
    for use in (
        lambda: http_get("url", **options),
        lambda: http_request("GET", "url", **options),
        lambda: register_http(None, **options),
    ):
        with pytest.raises(error, match=message):
            use()
