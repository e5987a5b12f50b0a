"""How a cluster's rate is divided over the tasks."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from udfs import ClusterBudget, ClusterRate
from udfs._limits.cluster_limits import LeasedLimit, TaskShare
from udfs._limits.limit_server import MAX_NAMES
from udfs._plan import limits
from udfs._plan.limits import limits_for_tasks

HOST = "127.0.0.1"


class Session:
    """A remote session with this master, or a classic one of this application."""

    def __init__(self, master: str, application: str | None = None) -> None:
        self.conf = {"spark.master": master, "spark.driver.host": HOST}
        if application is not None:
            self._sc = SimpleNamespace(applicationId=application, _jsc=object())


@pytest.fixture(autouse=True)
def _close_servers() -> Iterator[None]:
    yield
    for server in limits._servers.values():
        server.close()
    limits._servers.clear()


@pytest.mark.parametrize(("rate", "calls"), [(4, 1), (7.9, 1), (500, 125), (503.0, 125)])
def test_each_task_gets_an_equal_share_in_whole_calls(rate: float, calls: int) -> None:
    assert pickle.loads(pickle.dumps(limits_for_tasks(rate, None, Session("local[4]")))) == (TaskShare(calls),)


def test_a_rate_below_one_call_per_task_is_refused() -> None:
    message = r"cluster_rate must be at least the number of tasks that can run at once, 4, .*; got 3\.5"
    with pytest.raises(ValueError, match=message):
        limits_for_tasks(3.5, None, Session("local[4]"))


def test_each_task_gets_an_equal_share_of_a_weight() -> None:
    tokens = ClusterRate(10, weight=len, name="tokens")
    assert limits_for_tasks([8, tokens], None, Session("local[4]")) == (TaskShare(2), TaskShare(2.5, len, "tokens"))


def test_an_unknown_number_of_tasks_is_reported_with_the_settings_to_change() -> None:
    with pytest.raises(ValueError, match=r"cluster_rate needs a limit of the tasks .* or use gate=RateLimit\(\.\.\.\)"):
        limits_for_tasks(100, None, Session("yarn"))


@pytest.mark.parametrize("by", ["lease", "redis://192.0.2.1/0"])
def test_a_lease_needs_no_number_of_tasks(by: str) -> None:
    given = ClusterRate(0.5, by=by)
    (leased,) = pickle.loads(pickle.dumps(limits_for_tasks(given, None, Session("yarn", "a"))))
    assert isinstance(leased, LeasedLimit)
    assert leased.limit == given


def test_a_lease_needs_a_driver_that_workers_can_reach() -> None:
    with pytest.raises(
        ValueError, match=r"needs a thread on the driver, .* use cluster_rate=500, or the URL of a Redis"
    ):
        limits_for_tasks(ClusterRate(500, by="lease"), None, Session("local[4]"))


def test_a_url_that_cannot_be_read_is_refused_and_not_shown() -> None:
    with pytest.raises(ValueError, match="by must be a URL that redis") as caught:
        limits_for_tasks(ClusterRate(500, by="redis://:hid/den@192.0.2.1:port/0"), None, Session("local[4]"))
    assert "hid" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def lease(session: Session, **arguments: Any) -> Any:
    (leased,) = limits_for_tasks(ClusterRate(**{"rate": 40, "by": "lease", **arguments}), None, session)
    assert isinstance(leased, LeasedLimit)
    return leased.driver


def test_the_rates_of_an_application_have_one_address() -> None:
    one, two = (lease(Session("local[4]", "a")) for _ in range(2))
    assert one == two
    assert lease(Session("local[4]", "b")).secret != one.secret


def test_one_name_has_one_rate() -> None:
    session = Session("local[4]", "a")
    lease(session, name="weather")
    for _ in range(2):
        with pytest.raises(ValueError, match="named 'weather' is 40 calls per second in this session, got 20"):
            lease(session, rate=20, name="weather")


def test_a_port_that_is_taken_is_an_error_that_says_so() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            OSError, match=rf"the driver cannot listen on port={port} of {HOST} \(Address already in use"
        ):
            lease(Session("local[4]", "a"), port=port)
    assert lease(Session("local[4]", "a"), port=port).port == port


def test_a_source_whose_thread_has_ended_is_replaced_at_the_same_address() -> None:
    session = Session("local[4]", "a")
    before = lease(session)
    limits._servers["a"].close()
    assert lease(session) == before


def test_the_servers_that_are_over_and_the_names_of_old_rates_are_forgotten() -> None:
    lease(Session("local[4]", "a"))
    limits._servers["a"].close()
    session = Session("local[4]", "b")
    for _ in range(MAX_NAMES + 10):
        lease(session)
    assert list(limits._servers) == ["b"]
    assert len(limits._servers["b"]._rates) == MAX_NAMES


def budget(session: Session, amount: float = 50.0, **arguments: Any) -> LeasedLimit:
    (leased,) = limits_for_tasks(None, ClusterBudget(amount, name="books", **arguments), session)
    assert isinstance(leased, LeasedLimit)
    return leased


def test_a_budget_and_the_rates_of_an_application_have_one_address() -> None:
    session = Session("local[4]", "a")
    assert budget(session).driver == lease(session)


def test_one_name_has_one_amount_and_one_file(tmp_path: Path) -> None:
    session = Session("local[4]", "a")
    budget(session, path=tmp_path / "one")
    budget(session, path=str(tmp_path / "one"))
    for amount, path in ((60.0, tmp_path / "one"), (50.0, tmp_path / "two"), (50.0, None)):
        with pytest.raises(ValueError, match=r"named 'books' has amount=50 and path=.* in this session, got amount="):
            budget(session, amount, path=path)


def test_the_file_of_a_budget_may_be_in_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    budget(Session("local[4]", "a"), path="~/budgets")
    assert (tmp_path / "budgets").is_file()


def test_the_amount_of_a_file_can_be_raised_in_the_next_application(tmp_path: Path) -> None:
    """A budget with another name would be spent in addition."""
    session = Session("local[4]", "a")
    budget(session, 2.0, path=tmp_path / "budgets")
    with pytest.raises(ValueError, match=r"amount=5 and .*: change it in the next application, with the same name"):
        budget(session, 5.0, path=tmp_path / "budgets")
    with pytest.raises(ValueError, match=r"amount=5 and .*: give the other budget another name"):
        budget(session, 5.0, path=tmp_path / "others")
    assert budget(Session("local[4]", "b"), 5.0, path=tmp_path / "budgets").limit.amount == 5.0


def test_a_budget_of_a_remote_session_needs_a_redis() -> None:
    with pytest.raises(ValueError, match=r"cluster_budget=.* cannot start: use the URL of a Redis as by="):
        budget(Session("local[4]"))
    assert budget(Session("local[4]"), by="redis://192.0.2.1/0").driver is None
