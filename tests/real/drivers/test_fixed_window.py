"""Four tasks of a real Spark in front of a real HTTP service that counts calls in seconds of its clock."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import PATIENCE
from tests.udfs.http.serving import Peer, ok, serving_in_thread

DRIVER = Path(__file__).with_name("window_driver.py")


class FixedWindow:
    """Admits `limit` calls in each second, and answers the others with 429 and `Retry-After: 1`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.admitted: list[float] = []
        self.refused = 0
        self._second, self._calls = 0, 0

    async def respond(self, peer: Peer) -> None:
        now = time.monotonic()
        if int(now) != self._second:
            self._second, self._calls = int(now), 0
        self._calls += 1
        if self._calls <= self.limit:
            self.admitted.append(now)
            await ok(peer)
        else:
            self.refused += 1
            await peer.respond(b"", "retry-after: 1", status="429 Too Many Requests")

    def summary(self) -> str:
        seconds = self.admitted[-1] - self.admitted[0]
        share = len(self.admitted) / (self.limit * seconds)
        return f"{share:.0%} of the rate, {self.refused / len(self.admitted):.3f} refused per record"


@pytest.mark.thorough
def test_four_tasks_are_seldom_refused_by_a_fixed_window_with_a_rounded_retry_after() -> None:
    rows = 1_000
    service = FixedWindow(60)
    with serving_in_thread(service.respond) as server:
        done = subprocess.run(
            [sys.executable, str(DRIVER), server.url, str(rows)],
            capture_output=True,
            text=True,
            check=False,
            timeout=3 * PATIENCE,
        )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.split() == [str(number) for number in range(rows)]
    assert len(service.admitted) == rows
    assert service.refused <= 0.2 * rows, service.summary()
