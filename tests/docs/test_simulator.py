"""The simulator's answers are those of the real operator, on a virtual clock."""

from __future__ import annotations

from typing import Any

import pytest

from tests.docs.simulator import PAGE, answers, instants, throughput
from trio_asyncio_io._core.options import default_buffer

pytestmark = pytest.mark.slow

RECORDS = 300


def settings(capacity: int, buffer: int, calls: tuple[float, float, float], rate: float = 0.0) -> dict[str, Any]:
    """The settings of the page.

    Args:
        calls: The usual latency, the share of stragglers and their latency, in seconds.
    """
    latency, share, straggler = calls
    return {
        "capacity": capacity,
        "buffer": buffer,
        "latency": latency,
        "share": share,
        "straggler": straggler,
        "rate": rate,
        "records": RECORDS,
        "seed": 7,
    }


SETTINGS = {
    "one slot": settings(1, 1, (0.05, 0.1, 1.0)),
    "no stragglers": settings(10, 10, (0.05, 0.0, 1.0)),
    "a buffer that is too small": settings(10, 30, (0.02, 0.02, 2.0)),
    "a buffer that is large enough": settings(10, 200, (0.02, 0.02, 2.0)),
    "long stragglers": settings(5, 50, (0.01, 0.01, 30.0)),
    "stragglers that are quicker than the others": settings(5, 7, (0.5, 0.2, 0.05)),
    "a rate limit and stragglers": settings(10, 20, (0.05, 0.05, 2.0), rate=50),
    "a rate limit that does not matter": settings(3, 30, (0.2, 0.05, 1.0), rate=1000),
    "more slots than records": settings(500, 500, (0.1, 0.1, 1.0)),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_each_record_starts_ends_and_arrives_when_the_page_says(name: str) -> None:
    found, latencies = answers(SETTINGS[name])
    capacity, rate = SETTINGS[name]["capacity"], SETTINGS[name]["rate"]
    assert len(found["bars"]) == 4
    for bar in found["bars"]:
        real = instants(latencies, ordered=bar["ordered"], capacity=capacity, buffer=bar["buffer"], rate=rate)
        for step in ("started", "ended", "received"):
            expected = [each[step] for each in bar["first"]]
            assert [each[step] for each in real] == pytest.approx(expected, abs=1e-6), f"{bar['name']}: {step}"
        if real[-1]["started"]:
            assert throughput(real) == pytest.approx(bar["throughput"]), bar["name"]


@pytest.mark.parametrize("capacity", [1, 9, 10, 100, 1000, 5000, 200_000])
def test_the_default_buffer_is_that_of_the_operator(capacity: int) -> None:
    found, _ = answers(settings(capacity, capacity, (0.1, 0.0, 1.0)) | {"records": 10})
    assert found["bars"][2]["buffer"] == default_buffer(capacity)


def test_the_limit_is_littles_law_or_the_rate() -> None:
    found, latencies = answers(settings(10, 10, (0.1, 0.1, 1.1)))
    law = 10 * RECORDS / sum(latencies)
    assert (found["law"], found["limit"]) == pytest.approx((law, law))
    found, _ = answers(settings(10, 10, (0.1, 0.1, 1.1), rate=20))
    assert (found["law"], found["limit"], found["rule"]) == pytest.approx((law, 20.0, 22))


def test_a_large_buffer_reaches_the_limit_and_that_of_flink_does_not() -> None:
    found, _ = answers(settings(10, 100, (0.05, 0.02, 2.0)) | {"records": 20_000})
    shares = {bar["name"]: bar["share"] for bar in found["bars"]}
    assert shares["ordered_wait, default buffer"] == pytest.approx(1.0, abs=0.05)
    assert shares["unordered_wait, this buffer"] == pytest.approx(1.0, abs=0.05)
    assert shares["ordered_wait, buffer = capacity, as in Flink"] < 0.3


def test_the_page_needs_no_network() -> None:
    page = PAGE.read_text(encoding="utf-8")
    outside = [word for word in ("<link", " src=", "@import", "fetch(", "XMLHttpRequest", "import(") if word in page]
    assert outside == []
    assert page.count("https://") == 0
