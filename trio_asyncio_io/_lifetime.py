"""The lifetime of an operator: from opening the function to the exception that leaves the block."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import trio

from ._calls import Scope
from ._core.describe import describe
from ._core.notes import Notes
from ._errors import combine, flatten, is_cancelled, is_caused_by, split
from ._tasks import awaited

__all__ = ["Lifetime"]

# Seconds that the function's `close` may take. Its invocations may be short and its connections slow to close
CLOSE_SECONDS = 30.0


class Lifetime:
    """Opens and closes the function, owns the nursery, and decides which exception leaves the block.

    What the function uses by name stays in use until it is closed.

    Args:
        function: An object that may have an async `open` and an async `close`.
        notes: Adds notes to exceptions.
    """

    def __init__(self, function: object, notes: Notes) -> None:
        self._function = function
        self._notes = notes
        self._failure: Exception | None = None
        self._manager: AbstractAsyncContextManager[trio.Nursery] | None = None
        self._scope = Scope()

    async def begin(self) -> trio.Nursery:
        """Open the function, and then the nursery."""
        if self._manager is not None:
            raise RuntimeError("an operator runs once: create a new one for each run")
        if not trio.lowlevel.in_trio_task():
            raise RuntimeError(
                "the operator needs Trio, and this code does not run in a Trio task: start your program with "
                "`trio.run(main)`; in a notebook, run `%autoawait trio` first"
            )
        self._manager = trio.open_nursery()
        try:
            await self._call("open")
        except BaseException:
            await self._scope.end()
            raise
        self._nursery = await self._manager.__aenter__()
        self._scope.cover(self._nursery)
        return self._nursery

    def fail(self, error: Exception) -> None:
        """Cancel everything because of this exception. The first one will leave the block; others become its notes."""
        if self._failure is None:
            self._failure = error
            self._nursery.cancel_scope.cancel()
        elif error is not self._failure:
            self._notes.add(self._failure, f"while the operator stopped, this was also raised: {describe(error, 200)}")

    async def end(self, error: BaseException | None, on_unwound: Callable[[], None]) -> BaseException | None:
        """Cancel the nursery, wait until its tasks have unwound, and close the function.

        Args:
            error: The exception that the body of the block raised.
            on_unwound: Called when all tasks have unwound.

        Returns:
            The exception that leaves the block.
        """
        self._nursery.cancel_scope.cancel()
        outcome = await self._unwind(error)
        on_unwound()
        for close, name in ((self._close_function, "the function's close()"), (self._scope.end, "a shared resource")):
            try:
                await close()
            except Exception as close_error:  # noqa: BLE001 - the function may raise anything
                _, raised = split(outcome, is_cancelled)
                if raised is None:
                    outcome = close_error
                else:
                    self._notes.add(raised, f"{name} raised too: {describe(close_error, 200)}")
        return outcome

    async def _unwind(self, error: BaseException | None) -> BaseException | None:
        assert self._manager is not None
        cancelled, from_body = split(error, is_cancelled)
        from_nursery = None
        try:
            await self._manager.__aexit__(type(cancelled) if cancelled else None, cancelled, None)
        except BaseException as group:  # noqa: BLE001 - the caller raises what remains of it
            still_cancelled, from_nursery = split(group, is_cancelled)
            cancelled = still_cancelled and (cancelled or still_cancelled)
        else:
            cancelled = None
        _, from_body = split(from_body, is_caused_by(self._failure))
        return combine((self._failure, from_body, *flatten(from_nursery))) or cancelled

    async def _close_function(self) -> None:
        with trio.move_on_after(CLOSE_SECONDS, shield=True) as scope:
            await self._call("close")
        if scope.cancelled_caught:
            raise trio.TooSlowError(f"close() of the function did not end within {CLOSE_SECONDS:g} s")

    async def _call(self, name: str) -> None:
        method = getattr(self._function, name, None)
        if method is not None:
            with self._scope.entered():
                await awaited(method)
