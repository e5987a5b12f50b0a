"""The server's process, from its command line to its end."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from tests.support import PATIENCE
from udfs.demo import _server

pytestmark = pytest.mark.processes

COMMAND = [sys.executable, "-m", "udfs.demo._server"]


def test_answers_are_not_held_back_to_be_sent_together() -> None:
    """Otherwise each takes 40 ms, for its body waits until its head is acknowledged."""
    with _server._listener(0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_it_is_reached_from_this_machine_only() -> None:
    with _server._listener(0) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


def test_it_says_where_it_listens_and_ends_when_its_standard_input_does() -> None:
    with subprocess.Popen(
        [*COMMAND, "--with-parent"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline().removeprefix("listening on "))
            socket.create_connection(("127.0.0.1", port)).close()
            process.stdin.close()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("behaviour", "complaint"),
    [
        ('{"error_share": 2}', "error_share must be 0 to 1, got 2"),
        ('{"errors": 2}', "unexpected keyword argument 'errors'"),
        ("quick", "Expecting value"),
    ],
)
def test_a_bad_behaviour_is_refused_with_the_reason(
    behaviour: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        _server.main(["--behaviour", behaviour])
    assert complaint in capsys.readouterr().err
