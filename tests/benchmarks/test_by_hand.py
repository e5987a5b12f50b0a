"""Code by hand that the benchmark compares with: each variant has the answers in order, and the window slides."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial

import pandas as pd
import pytest

from benchmarks._by_hand import AHEAD, CAPACITY, gathered, requesting, sleeping, sliding_loop
from benchmarks._contenders import Gauge
from benchmarks._http_server import serving


def frames(rows: int, size: int) -> Iterator[pd.DataFrame]:
    for start in range(0, rows, size):
        yield pd.DataFrame({"id": range(start, min(start + size, rows))})


@pytest.mark.parametrize("way", [gathered, sliding_loop])
def test_the_rows_have_their_answers_in_input_order(way: object) -> None:
    assert callable(way)
    client = partial(sleeping, lambda number: (7 * number % 5) / 1000)
    found = list(way(client, frames(250, 100)))
    assert [len(frame) for frame in found] == [100, 100, 50]
    assert [each for frame in found for each in frame["answer"]] == list(range(250))


def test_the_window_starts_calls_of_later_frames_while_a_call_of_the_first_one_runs() -> None:
    gauge, second = Gauge(), asyncio.Event()

    async def call(number: int) -> int:
        with gauge:
            if number == 0:
                await second.wait()  # would never end if the first frame were a barrier
            if number == 100:
                second.set()
            await asyncio.sleep(0)
        return number

    assert len(list(sliding_loop(lambda: nullcontext(call), frames(300, 100)))) == 3
    assert gauge.calls == 300
    assert gauge.peak <= CAPACITY


@pytest.mark.slow
def test_the_window_reads_no_more_frames_than_its_rows() -> None:
    read: list[int] = []

    def source() -> Iterator[pd.DataFrame]:
        for frame in frames(3 * AHEAD, AHEAD // 2):
            read.append(len(frame))
            yield frame

    for yielded, _ in enumerate(sliding_loop(partial(sleeping, lambda _: 0.0), source())):
        assert len(read) - yielded <= 3  # two fill the window, and the third one is beyond it
    assert len(read) == 6


@pytest.mark.processes
def test_requests_through_one_session_have_the_answers_of_the_server() -> None:
    with serving() as url:
        found = list(sliding_loop(partial(requesting, f"{url}/slow"), frames(40, 20)))
    assert [each for frame in found for each in frame["answer"]] == list(range(40))
