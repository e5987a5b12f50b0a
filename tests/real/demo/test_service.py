"""The command `python -m udfs.demo.service`."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest

from tests.support import PATIENCE
from udfs.demo import service

pytestmark = pytest.mark.processes

COMMAND = [sys.executable, "-m", "udfs.demo.service"]


def test_the_listener_disables_nagles_algorithm() -> None:
    """Otherwise each response takes 40 ms, because its body waits until its head is acknowledged."""
    with service.listener(0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_the_service_listens_on_loopback_only() -> None:
    with service.listener(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def get(url: str) -> tuple[int, str | None, object]:
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=PATIENCE) as answer:
            return answer.status, None, json.load(answer)
    except HTTPError as error:
        return error.code, error.headers["Retry-After"], json.load(error)


def test_a_user_starts_the_service_calls_it_and_stops_it_with_ctrl_c(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            found = re.fullmatch(r"listening on (http://127\.0\.0\.1:\d+)\n", process.stdout.readline())
            assert found is not None
            status, _, weather = get(f"{found[1]}/weather/EWR/2013-01-01T10:00:00Z")
            assert (status, isinstance(weather, dict) and weather["temp"]) == (200, 39.02)
            assert [get(f"{found[1]}/flaky/a")[0] for _ in range(2)] == [503, 200]
            assert get(f"{found[1]}/busy/a")[:2] == (429, "1")
            assert get(f"{found[1]}/slow/0.01")[0] == 200
            process.send_signal(signal.SIGINT)
            assert process.communicate(timeout=PATIENCE) == ("", "")
            assert process.returncode == 0
        finally:
            process.kill()


@pytest.mark.parametrize("port", ["-1", "65536", "any"])
def test_an_illegal_port_is_named(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        service.main([f"--port={port}"])
    assert f"--port: must be 0 to 65535, got {port}" in capsys.readouterr().err


def test_a_port_in_use_is_reported_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = subprocess.run([*COMMAND, "--port", str(port)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        f"error: port {port}: Address already in use. Choose another: --port N, or --port 0 for any free one\n"
    )


def test_help_lists_the_routes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        service.main(["--help"])
    printed = capsys.readouterr().out
    for route in (
        "/weather/{origin}/{time_hour}",
        "/planes/{tailnum}",
        "/flaky/{key}",
        "/busy/{key}",
        "/slow/{seconds}",
    ):
        assert route in printed
