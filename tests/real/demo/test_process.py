"""The lookup service as a real process: its responses, its statistics and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx
import pytest
import trio

from tests.support import thorough_except, wait_until
from udfs.demo import _process
from udfs.demo._data import plane_by_tailnum, weather_by_hour
from udfs.demo._process import Behaviour, Service, service

pytestmark = pytest.mark.processes

PROMPT = Behaviour(mean_seconds=0, straggler_share=0, error_share=0)
SLOW = Behaviour(straggler_share=1, straggler_seconds=(1000, 1000), error_share=0)

PARENT = """
import os, time
from udfs.demo._process import service
with service() as lookup:
    child = os.fork() if {forks} else 0
    if child or not {forks}:
        print(lookup.pid, child, flush=True)
    time.sleep(1000)
"""


def is_alive(pid: int) -> bool:
    """Whether the process runs. A zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


@pytest.fixture(scope="module")
def prompt() -> Iterator[Service]:
    with service(PROMPT) as running:
        yield running


@pytest.fixture
def lookup(prompt: Service) -> Service:
    prompt.reset()
    return prompt


def test_the_service_returns_the_rows_of_the_data(lookup: Service) -> None:
    weather, planes = weather_by_hour(), plane_by_tailnum()
    with httpx.Client(base_url=lookup.url, trust_env=False) as http:
        for origin, hour in list(weather)[::2000]:
            assert http.get(f"/weather/{origin}/{hour}").json() == weather[origin, hour]
        for tailnum in list(planes)[::300]:
            assert http.get(f"/planes/{tailnum}").json() == planes[tailnum]
    assert lookup.stats().requests == lookup.stats().ok == 14 + 12
    assert lookup.stats().connections == 1


def test_a_time_may_be_percent_encoded(lookup: Service) -> None:
    quoted = httpx.get(f"{lookup.url}/weather/EWR/2013-01-01T10%3A00%3A00Z", trust_env=False)
    assert quoted.json()["temp"] == 39.02


def test_rows_that_are_not_in_the_data_are_a_404(lookup: Service) -> None:
    with httpx.Client(base_url=lookup.url, trust_env=False) as http:
        assert http.get("/weather/EWR/2013-12-31T10:00:00Z").status_code == 404
        assert http.get("/planes/NA").status_code == 404
    assert lookup.stats().missing == 2


def test_a_failure_is_a_500() -> None:
    with service(Behaviour(mean_seconds=0, straggler_share=0, error_share=1)) as lookup:
        assert httpx.get(f"{lookup.url}/planes/N10156", trust_env=False).status_code == 500
        assert lookup.stats().failed == 1


@pytest.mark.thorough
def test_two_services_with_one_seed_return_the_same_statuses() -> None:
    behaviour = Behaviour(mean_seconds=0, straggler_share=0, error_share=0.3, seed=11)
    paths = [f"/planes/{tailnum}" for tailnum in list(plane_by_tailnum())[:50]]

    def statuses(paths: list[str]) -> dict[str, int]:
        with service(behaviour) as lookup, httpx.Client(base_url=lookup.url, trust_env=False) as http:
            return {path: http.get(path).status_code for path in paths}

    first = statuses(paths)
    assert first == statuses(paths[::-1])
    assert set(first.values()) == {200, 500}


async def test_a_client_that_hangs_up_is_no_longer_in_flight() -> None:
    def shows(lookup: Service, in_flight: int) -> None:
        wait_until(lambda: lookup.stats().in_flight == in_flight)

    with service(SLOW) as lookup:
        async with (
            httpx.AsyncClient(base_url=lookup.url, trust_env=False) as http,
            trio.open_nursery() as nursery,
        ):
            for _ in range(20):
                nursery.start_soon(partial(http.get, "/planes/N10156", timeout=None))
            await trio.to_thread.run_sync(shows, lookup, 20)
            nursery.cancel_scope.cancel()
        await trio.to_thread.run_sync(shows, lookup, 0)
        assert (lookup.stats().peak_in_flight, lookup.stats().cancelled) == (20, 20)


def test_the_service_ends_with_the_block() -> None:
    with service(PROMPT) as lookup:
        assert is_alive(lookup.pid)
    assert not is_alive(lookup.pid)


def test_the_service_ends_if_the_block_raises() -> None:
    with pytest.raises(KeyboardInterrupt), service(PROMPT) as lookup:  # noqa: PT012 - the test is about the block
        pid = lookup.pid
        raise KeyboardInterrupt
    assert not is_alive(pid)


def test_sigterm_ends_the_service_with_requests_in_flight() -> None:
    async def main(lookup: Service) -> None:
        async with (
            httpx.AsyncClient(base_url=lookup.url, trust_env=False) as http,
            trio.open_nursery() as nursery,
        ):

            async def get() -> None:
                with pytest.raises(httpx.TransportError):
                    await http.get("/planes/N10156", timeout=None)

            nursery.start_soon(get)
            await trio.to_thread.run_sync(wait_until, lambda: lookup.stats().in_flight == 1)
            os.kill(lookup.pid, signal.SIGTERM)

    with service(SLOW) as lookup:
        trio.run(main, lookup)
        wait_until(lambda: not is_alive(lookup.pid))


@pytest.mark.parametrize("forks", thorough_except([True], [False, True]))
def test_the_service_ends_when_its_parent_is_killed(forks: bool) -> None:
    """A forked child of the parent may survive, and then holds the service's standard input open."""
    command = [sys.executable, "-c", PARENT.format(forks=forks)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, child = map(int, parent.stdout.readline().split())
        assert is_alive(pid)
        parent.kill()
        parent.wait()
    try:
        wait_until(lambda: not is_alive(pid))
        assert not child or is_alive(child)
    finally:
        if child:
            os.kill(child, signal.SIGKILL)


def test_a_service_that_does_not_respond_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_process, "_END_SECONDS", 0.05)
    with service(PROMPT) as lookup:
        os.kill(lookup.pid, signal.SIGSTOP)
    assert not is_alive(lookup.pid)


def test_the_service_has_a_session_of_its_own(lookup: Service) -> None:
    assert os.getsid(lookup.pid) == lookup.pid != os.getsid(0)


def test_a_service_that_does_not_start_is_reported_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Behaviour, "to_json", lambda _: json.dumps({"error_share": 2}))
    with (
        pytest.raises(RuntimeError, match=r"did not start:(.|\n)*error_share must be 0 to 1"),
        service(),
    ):
        pass


def test_a_proxy_in_the_environment_is_not_used(lookup: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert lookup.stats().requests == 0
