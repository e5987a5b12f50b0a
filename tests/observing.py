"""Observers that record the calls of their hooks, or pass them on."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import trio

from trio_asyncio_io import Observer

RECORD_HOOKS = ("accepted", "started", "attempt_failed", "timed_out", "completed", "failed", "cancelled", "emitted")


class StepRecorder(Observer):
    """Records hook, instant and arguments of each step, with exceptions as their messages.

    Args:
        hooks: Those that it overrides.
    """

    def __init__(self, hooks: tuple[str, ...] = RECORD_HOOKS) -> None:
        self.steps: list[tuple[Any, ...]] = []
        for hook in hooks:
            setattr(self, hook, partial(self._record, hook))

    def _record(self, hook: str, *arguments: Any) -> None:
        texts = [str(argument) if isinstance(argument, Exception) else argument for argument in arguments]
        self.steps.append((hook, trio.current_time(), *texts))


class Several(Observer):
    """Calls several observers."""

    def __init__(self, *observers: Observer) -> None:
        for name, member in vars(Observer).items():
            if inspect.isfunction(member):
                setattr(self, name, partial(self._call, name, observers))

    @staticmethod
    def _call(name: str, observers: tuple[Observer, ...], *arguments: Any) -> None:
        for observer in observers:
            getattr(observer, name)(*arguments)
