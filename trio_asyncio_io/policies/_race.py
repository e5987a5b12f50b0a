"""A race: several calls for one element, of which the first result counts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Any

import trio

from .._errors import NotAsyncError
from .._exceptions import is_cancelled, split

__all__ = ["Race"]


class Race:
    """A first call, and further ones while it has no result.

    Args:
        call: Makes a call.
        after: Seconds from the start of one call to that of the next. After an exception, the next one starts at once.
        extra: Upper limit of further calls.
        admit: Returns what a further call runs in. None: there are no further calls.

    Attributes:
        is_won_by_extra: Whether the result is that of a further call.
    """

    def __init__(
        self,
        call: Callable[[], Awaitable[Any]],
        after: float,
        extra: int,
        admit: Callable[[], AbstractContextManager[object] | None],
    ) -> None:
        self._call = call
        self._after = after
        self._extra = extra
        self._admit = admit
        self._has_failed = trio.Event()
        self._result: tuple[Any] | None = None
        self._error: Exception | None = None
        self._has_first_failed = False
        self._nursery: trio.Nursery
        self.is_won_by_extra = False

    async def run(self) -> Any:
        """The first result, when the other calls have unwound. The first call is made in the present task.

        Raises:
            Exception: All calls raised; that of the first one.

        Cancellation: all calls are cancelled and unwind. If one returns or raises nevertheless, that counts.
        """
        stopped: BaseException | None = None
        try:
            async with trio.open_nursery() as self._nursery:
                self._nursery.start_soon(self._start_further_calls)
                await self._run_first()
        except BaseException as raised:  # noqa: BLE001 - it is raised below, unless there is an outcome
            stopped = _without_group(raised)
        is_interrupted = split(stopped, is_cancelled)[1] is not None
        if self._result is not None and not is_interrupted:
            return self._result[0]
        error = stopped if is_interrupted else self._error or stopped
        assert error is not None
        try:
            raise error
        finally:
            del error, stopped, self._error  # no cycle of the exception and this frame

    def take_error(self) -> Exception | None:
        """The exception of the first call, after a further one has won. None: it was cancelled. Call it once."""
        error, self._error = self._error, None  # no cycle of the exception and this object
        return error if self._has_first_failed else None

    async def _start_further_calls(self) -> None:
        for _ in range(self._extra):
            with trio.move_on_after(self._after):
                await self._has_failed.wait()
            self._has_failed = trio.Event()
            context = self._admit()
            if context is None:
                return
            self._nursery.start_soon(self._run_extra, context)

    async def _run_first(self) -> None:
        try:
            self._end(await self._call())
        except Exception as error:  # noqa: BLE001 - `run` raises it
            self._error, self._has_first_failed = error, True
            self._fail(error)

    async def _run_extra(self, context: AbstractContextManager[object]) -> None:
        try:
            with context:
                result = await self._call()
        except Exception as error:  # noqa: BLE001 - `run` raises it, or that of the first call
            self._error = self._error or error
            self._fail(error)
        else:
            self.is_won_by_extra |= self._result is None
            self._end(result)

    def _end(self, result: Any) -> None:
        if self._result is None:
            self._result = (result,)
        self._nursery.cancel_scope.cancel()

    def _fail(self, error: Exception) -> None:
        if isinstance(error, NotAsyncError):
            self._nursery.cancel_scope.cancel()
        self._has_failed.set()


def _without_group(error: BaseException) -> BaseException:
    """The exception in the group that a nursery makes of a single one."""
    if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        single: BaseException = error.exceptions[0]
        return single
    return error
