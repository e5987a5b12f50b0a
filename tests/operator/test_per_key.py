"""per_key: several calls for one key at once, with the output in input order."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import AsyncWaitOperator, KeyedStreamElementQueue, keyed_wait
from trio_asyncio_io.testing import Recorder, Scripted, Step


def first_letter(value: str) -> str:
    return value[0]


async def test_so_many_calls_of_one_key_run_at_once(autojump_clock: MockClock) -> None:
    latencies = {"a1": Step(5.0), "a2": Step(1.0), "a3": Step(1.0), "a4": Step(9.0), "b1": Step(2.0)}
    recorder = Recorder(Scripted(latencies))
    got = await outputs(keyed_wait(latencies, recorder, key=first_letter, per_key=2, timeout=99.0))
    assert {call.value: call.started for call in recorder.calls} == {"a1": 0, "a2": 0, "b1": 0, "a3": 1, "a4": 2}
    assert got == ["b1", "a1", "a2", "a3", "a4"]


@pytest.mark.parametrize("per_key", [0, 1.5, "2"])
def test_per_key_must_be_a_positive_integer(per_key: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="per_key"):
        keyed_wait("a", Scripted(), key=first_letter, per_key=per_key, timeout=1.0)
    with pytest.raises((TypeError, ValueError), match="per_key"):
        KeyedStreamElementQueue(1, key=first_letter, per_key=per_key)


def test_other_modes_refuse_per_key() -> None:
    arguments: Any = {"per_key": 2}
    with pytest.raises(ValueError, match='mode "keyed"'):
        AsyncWaitOperator(Scripted(), timeout=1.0, **arguments)
