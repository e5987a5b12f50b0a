"""An observer that records every call of its hooks."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import trio

from trio_asyncio_io import Observer


class StepRecorder(Observer):
    """Records hook, instant, sequence, element and the other arguments, with exceptions as their messages."""

    def __init__(self) -> None:
        self.steps: list[tuple[Any, ...]] = []

    def accepted(self, *arguments: Any) -> None:
        self._record("accepted", *arguments)

    def started(self, *arguments: Any) -> None:
        self._record("started", *arguments)

    def attempt_failed(self, *arguments: Any) -> None:
        self._record("attempt_failed", *arguments)

    def timed_out(self, *arguments: Any) -> None:
        self._record("timed_out", *arguments)

    def completed(self, *arguments: Any) -> None:
        self._record("completed", *arguments)

    def failed(self, *arguments: Any) -> None:
        self._record("failed", *arguments)

    def cancelled(self, *arguments: Any) -> None:
        self._record("cancelled", *arguments)

    def emitted(self, *arguments: Any) -> None:
        self._record("emitted", *arguments)

    def _record(self, hook: str, *arguments: Any) -> None:
        texts = [str(argument) if isinstance(argument, Exception) else argument for argument in arguments]
        sequence, element, *rest = texts
        self.steps.append((hook, trio.current_time(), sequence, element, *rest))


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
