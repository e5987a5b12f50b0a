"""The lifetime of an operator: opens and closes its function and its nursery, and decides which exception leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from inspect import isawaitable
from typing import Any

import trio
from trio.lowlevel import disable_ki_protection

from .._values.describe import describe
from .._values.exceptions import add_note
from .errors import NotAsyncError, combine, flatten, is_cancelled, is_caused_by, split
from .sharing import Scope

# Seconds that the function's `close` may take. Its invocations may be short and its connections slow to close
CLOSE_SECONDS = 30.0


class Lifetime:
    """Opens and closes the function, owns the nursery, and decides which exception leaves the block.

    What the function uses by name stays in use until it is closed.

    Args:
        function: An object that may have an async `open` and an async `close`.
    """

    def __init__(self, function: object) -> None:
        self._function = function
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
                "`trio.run(main)`; in a notebook, run `%autoawait trio` in a cell before this one"
            )
        self._manager = trio.open_nursery()
        try:
            await self._call("open")
        except BaseException as error:
            if isinstance(error, Exception):
                add_note(error, f"raised by open() of {type(self._function).__name__}, before the first call")
            await self._scope.end()
            raise
        self._nursery = await self._manager.__aenter__()
        self._scope.include(self._nursery)
        return self._nursery

    def fail(self, error: Exception) -> None:
        """Cancel everything because of this exception. The first one will leave the block; others become its notes."""
        if self._failure is None:
            self._failure = error
            self._nursery.cancel_scope.cancel()
        elif error is not self._failure:
            add_note(self._failure, f"while the operator stopped, this was also raised: {describe(error, 200)}")

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
        self._failure = None
        try:
            on_unwound()
            if self._failure is not None:
                outcome = _with(outcome, self._failure, "a gate")
            with trio.CancelScope(shield=True):  # a pending Ctrl-C is raised here, and not in the `close` below
                await trio.lowlevel.checkpoint_if_cancelled()
        finally:
            try:
                outcome = await self._closed(outcome, self._close_function, "the function's close()")
            finally:  # Ctrl-C may come while the function closes
                outcome = await self._closed(outcome, self._scope.end, "a shared resource")
        return outcome

    async def _closed(
        self, outcome: BaseException | None, close: Callable[[], Awaitable[None]], name: str
    ) -> BaseException | None:
        """The exception that leaves the block, after this was closed, too."""
        try:
            await close()
        except Exception as error:  # noqa: BLE001 - the function may raise anything
            return _with(outcome, error, name)
        return outcome

    async def _unwind(self, error: BaseException | None) -> BaseException | None:
        assert self._manager is not None
        cancelled, from_body = split(error, is_cancelled)
        still_cancelled = from_nursery = None
        try:
            await self._manager.__aexit__(type(cancelled) if cancelled else None, cancelled, None)
        except BaseException as group:  # noqa: BLE001 - the caller raises what remains of it
            still_cancelled, from_nursery = split(group, is_cancelled)
        _, from_body = split(from_body, is_caused_by(self._failure))
        errors = self._failure, from_body, *flatten(from_nursery)
        raised = combine("several exceptions leave the operator's block", errors)
        if raised is None and still_cancelled is not None:
            return cancelled or still_cancelled
        return raised

    async def _close_function(self) -> None:
        with trio.move_on_after(CLOSE_SECONDS, shield=True) as scope:
            await self._call("close")
        if scope.cancelled_caught:
            raise trio.TooSlowError(f"close() of the function did not end within {CLOSE_SECONDS:g} s")

    async def _call(self, name: str) -> None:
        method = getattr(self._function, name, None)
        if method is not None:
            with self._scope.entered():
                await self._awaited(name, method)

    @disable_ki_protection
    async def _awaited(self, name: str, method: Callable[[], Any]) -> None:
        result = method()
        if not isawaitable(result):
            raise NotAsyncError(
                f"{name}() of {type(self._function).__name__} must be async: declare it with `async def {name}(self)`"
            )
        await result


def _with(outcome: BaseException | None, error: Exception, name: str) -> BaseException:
    """The exception that leaves the block, if this was raised at its end."""
    _, raised = split(outcome, is_cancelled)
    if outcome is None or raised is None:
        return error
    add_note(raised, f"{name} raised too: {describe(error, 200)}")
    return outcome
