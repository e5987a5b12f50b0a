"""No order of tasks changes what comes out: the same world has the same outputs and calls, and they are the heart's.

A history is what the world has done up to a moment when no task is ready: which calls have returned or raised, which
consumer has gone on, what the clock shows, whether the block was cancelled. After each history, whatever the order of
the tasks was, the operator must have given the same outputs and must make the same calls as docs/examples/heart.py.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Self

import pytest
from pictures.runs import script

from tests.explored.loom import Event, Exploration, Loom, Violation
from tests.explored.world import OperatorWorld, Setting, explore_world
from tests.support import variation_except

pytestmark = pytest.mark.slow

Heart = script("heart").Heart
Histories = dict[tuple[str, ...], set[tuple[object, ...]]]


class ObservedWorld(OperatorWorld):
    """Notes what can be seen after each history."""

    def __init__(self, histories: Histories, setting: Setting, loom: Loom) -> None:
        super().__init__(setting, loom)
        self._histories = histories
        self._acts: list[str] = []

    def events(self) -> list[Event]:
        found = super().events()
        self._see()
        return [Event(rank, text, partial(self._act, text, act)) for rank, text, act in found]

    def _act(self, text: str, act: Callable[[], object]) -> None:
        self._acts.append(text)
        act()

    def _see(self) -> None:
        calls = tuple(sorted(map(tuple, self.calls.values())))
        self._histories.setdefault(tuple(self._acts), set()).add((tuple(self.outputs.got), calls))

    async def main(self) -> None:
        await super().main()
        self._acts.append("the end")
        self._see()


class HeartWorld(ObservedWorld):
    """The same world around the heart, without the checks that need the operator's insides."""

    @staticmethod
    def operator_type(function: Any, source: Any, restore: Any, **options: Any) -> Any:
        heart = Heart(source, function, restore=restore, **options)
        return _InBlock(heart)

    def check(self, *, is_quiescent: bool) -> None:
        pass

    def _check_cancelled(self, values: list[int]) -> None:
        pass

    def _check_left(self, *, ended: bool) -> None:
        if self.calls:
            raise Violation("a call is alive after the block")


class _InBlock:
    """The heart, with the operator's names."""

    def __init__(self, heart: Any) -> None:
        self.output = heart
        self.snapshot = heart.snapshot
        self._block: AbstractAsyncContextManager[Any] = heart.running()

    async def __aenter__(self) -> Self:
        await self._block.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> bool | None:
        return await self._block.__aexit__(*error)  # type: ignore[arg-type]


def histories_of(world: Any, setting: Setting) -> tuple[Histories, Exploration]:
    found: Histories = {}
    result = explore_world(setting, partial(world, found), is_pruned=False)
    return found, result


SETTINGS = [
    Setting(records=3, bound=2),
    Setting(records=4, mode="unordered", walls=(1,), buffer=3, bound=1),
    Setting(records=4, mode="keyed", buffer=3, bound=1),
    Setting(capacity=1, retries=1, fails=True, bound=1),
    Setting(timeout=3.0, retries=1, fails=True, bound=0),
    Setting(records=3, capacity=1, is_slow=True, bound=2),
    Setting(records=3, walls=(0,), flatten=(0, 2, 1), bound=1),
    Setting(records=3, cancel=True, bound=0),
    Setting(records=3, mode="unordered", flatten=(1, 2, 0), stop_after=2, bound=1),
    Setting(fails=True, on_error="raise", bound=1),
    Setting(fails=True, on_error="handler", bound=1),
    Setting(mode="keyed", timeout=3.0, walls=(0,), bound=1),
]


@pytest.mark.parametrize("setting", variation_except(SETTINGS[:4], SETTINGS), ids=str)
def test_after_each_history_all_orders_of_tasks_give_what_the_heart_gives(setting: Setting) -> None:
    real, found = histories_of(ObservedWorld, setting)
    assert found.is_complete, found
    heart, found = histories_of(HeartWorld, setting)
    assert found.is_complete, found
    ambiguous = {history: seen for history, seen in real.items() if len(seen) > 1}
    assert not ambiguous, f"{setting}: the order of the tasks decides after {min(ambiguous.items(), key=_length)}"
    different = {history: (real.get(history), heart.get(history)) for history in real | heart}
    different = {history: both for history, both in different.items() if both[0] != both[1]}
    assert not different, f"{setting}: the operator and the heart differ after {min(different.items(), key=_length)}"


def _length(item: tuple[tuple[str, ...], object]) -> int:
    return len(item[0])
