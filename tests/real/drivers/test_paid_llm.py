"""The example of a paid LLM: killed half-way and run again, it pays twice only for what was in flight."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.llm import EXAMPLE, LLMApp, served, service
from tests.processes import Family
from tests.real.jobs import start
from tests.real.memos import remembered
from tests.support import PATIENCE, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.processes]

ROWS, GROUP, TASKS, CAPACITY = 1_000, 10, 2, 3
ANSWERED = 40  # of about 100 calls
ROOMY = {"requests_per_minute": 60_000, "tokens_per_minute": 60_000_000, "overloaded": 7}


class HalfAnswered(LLMApp):
    """A service that takes the money of all calls, and answers only some of them while it hangs.

    Attributes:
        hangs: Whether it does.
        calls, held: All calls, and those that will not be answered.
        texts: How many texts have been answered.
    """

    def __init__(self) -> None:
        super().__init__(**ROOMY)
        self.hangs = True
        self.calls = self.held = self.texts = 0

    async def complete(self, *arguments: Any) -> Any:
        response = await super().complete(*arguments)
        if response is None or response.status != 200:
            return response
        self.calls += 1
        if self.hangs and self.calls > ANSWERED:
            self.held += 1
            await asyncio.Event().wait()
        (choice,) = response.value["choices"]
        self.texts += len(json.loads(choice["message"]["content"])["items"])
        return response


def job(url: str, folder: Path) -> Family:
    """The example, with this service, and limits that do not slow down the test."""
    source = EXAMPLE.read_text(encoding="utf-8")
    for old, new in [
        ("http://127.0.0.1:8001", url),
        ("REQUESTS, TOKENS = 300, 60_000", "REQUESTS, TOKENS = 60_000, 60_000_000"),
        ("capacity=5,", f"capacity={CAPACITY},"),
        ("initial=1.0", "initial=0.01"),
        ("give_up=10,", "give_up=0.1,"),
    ]:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    (folder / "job.py").write_text(source, encoding="utf-8")
    return start(folder / "job.py", folder, "1.00")


@pytest.mark.timeout(4 * PATIENCE, method="thread")
def test_a_job_that_is_killed_half_way_pays_twice_only_for_what_was_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LATENCY_SECONDS", 0.0)
    app = HalfAnswered()
    with served(app) as url:
        first = job(url, tmp_path)
        try:
            wait_until(
                lambda: (
                    first.leader.poll() is not None
                    or (app.held and remembered(tmp_path / "ratings-OpenAI") == app.texts)
                ),
                "the answers are not in the memo",
            )
            assert first.leader.poll() is None, first.tail()
        finally:
            first.kill()
        in_flight = app.stats()["rows"] - app.texts
        assert 0 < in_flight <= TASKS * CAPACITY * GROUP

        app.hangs = False
        second = job(url, tmp_path)
        try:
            assert second.leader.wait(2 * PATIENCE) == 0, second.tail()
        finally:
            second.kill()
    stats = app.stats()
    assert stats["rows"] == ROWS
    assert stats["rows_paid_twice"] == in_flight
    assert stats["dollars"] <= 1.00
    assert stats["overloaded"] > 0
    rows = pq.read_table(tmp_path / "rated").to_pylist()
    assert len(rows) == ROWS
    assert all(row["label"] in {"positive", "neutral", "negative"} and row["error"] is None for row in rows)
