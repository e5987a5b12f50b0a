"""Group commit: requests that arrive while a transaction runs form the next transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import trio

from ..._errors import copied
from ..._sqlite import FileThread
from .._shared_call import SharedCall

__all__ = ["GroupCommit"]

Request = TypeVar("Request")
Outcome = TypeVar("Outcome")


class _Group(Generic[Request, Outcome]):
    """Requests that are executed together, and the call that executes them."""

    __slots__ = ("call", "requests")

    call: SharedCall[Sequence[Outcome | Exception]]

    def __init__(self) -> None:
        self.requests: list[Request] = []


class GroupCommit(Generic[Request, Outcome]):
    """Executes the requests of many tasks in a thread, with as few thread calls as possible.

    Args:
        execute: A blocking callable, requests -> one outcome each. Called in a thread, one call at a time.
    """

    def __init__(self, execute: Callable[[list[Request]], Sequence[Outcome | Exception]]) -> None:
        self._execute = execute
        self._thread = FileThread()
        self._lock = trio.Lock()
        self._open_group: _Group[Request, Outcome] | None = None

    async def submit(self, request: Request) -> Outcome:
        """The outcome of the request. Raises it if it is an exception.

        Cancellation: the caller leaves at once if the request's group is still waiting. If its group is being executed,
        the caller waits for the outcome, which counts.
        """
        group = self._open_group
        if group is None or group.call.is_abandoned:
            group = self._new_group()
        number = len(group.requests)
        group.requests.append(request)
        outcome = (await group.call.wait())[number]
        if isinstance(outcome, Exception):
            raise copied(outcome)
        return outcome

    def _new_group(self) -> _Group[Request, Outcome]:
        group = _Group[Request, Outcome]()
        group.call = SharedCall(lambda: self._flush(group))
        group.call.start("trio_asyncio_io group commit")
        self._open_group = group
        return group

    async def _flush(self, group: _Group[Request, Outcome]) -> Sequence[Outcome | Exception]:
        try:
            await self._lock.acquire()
        finally:
            if self._open_group is group:
                self._open_group = None
        try:
            return await self._thread.run(self._execute, group.requests)
        finally:
            self._lock.release()
