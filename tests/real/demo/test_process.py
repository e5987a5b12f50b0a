"""The lookup service as the demo's child process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support import wait_until
from udfs.demo import service
from udfs.demo._flights import planes, weather

pytestmark = pytest.mark.processes

PARENT = """
import time
from udfs.demo import service
with service.running() as url:
    print(url, flush=True)
    time.sleep(1000)
"""


def responds(url: str) -> bool:
    try:
        return httpx.get(f"{url}/stats", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with service.running() as url:
        yield url


def test_the_service_returns_the_rows_of_the_data(url: str) -> None:
    with httpx.Client(base_url=url, trust_env=False, transport=httpx.HTTPTransport(retries=0)) as http:

        def get(path: str) -> object:
            while (response := http.get(path)).status_code == 500:
                pass
            return response.json()

        for row in list(weather())[::2000]:
            assert get(f"/weather/{row['origin']}/{row['time_hour']}") == row
        for row in list(planes())[::300]:
            assert get(f"/planes/{row['tailnum']}") == row


def test_a_time_may_be_percent_encoded(url: str) -> None:
    quoted = httpx.get(f"{url}/weather/EWR/2013-01-01T10%3A00%3A00Z", trust_env=False)
    assert quoted.json()["temp"] == 39.02


def test_the_service_has_faults(url: str) -> None:
    """The first path in the data whose first response is an error."""
    paths = (f"/planes/{row['tailnum']}" for row in planes())
    path = next(path for path in paths if service.latency(path, 1, faults=True)[1])
    assert httpx.get(url + path, trust_env=False).status_code == 500


def test_the_service_ends_with_the_block_even_if_that_raises() -> None:
    with pytest.raises(KeyboardInterrupt), service.running() as url:  # noqa: PT012 - the test is about the block
        assert responds(url)
        raise KeyboardInterrupt
    assert not responds(url)


def test_the_service_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        url = parent.stdout.readline().strip()
        assert responds(url)
        parent.kill()
        parent.wait()
    wait_until(lambda: not responds(url))


def test_ctrl_c_in_the_terminal_does_not_reach_the_service(url: str) -> None:
    children = [pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()]
    sessions = {
        os.getsid(int(pid)) for pid in children if "udfs.demo.service" in Path(f"/proc/{pid}/cmdline").read_text()
    }
    assert sessions
    assert os.getsid(0) not in sessions


def test_sigterm_ends_the_service_with_requests_in_flight(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "udfs.demo.service", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("listening on ").strip()
        with socket.create_connection(("127.0.0.1", httpx.URL(url).port)) as client:
            client.sendall(b"GET /slow/1000 HTTP/1.1\r\nHost: service\r\n\r\n")
            assert responds(url)  # to a later request, so this one is in flight
            process.send_signal(signal.SIGTERM)
            assert process.wait() == 0
            assert client.recv(1) == b""


def test_a_service_that_does_not_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="did not start"), service.running():
        pass
