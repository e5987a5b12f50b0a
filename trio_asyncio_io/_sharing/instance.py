"""One opening of a shared resource, and the task that owns it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf
from typing import Any

import trio

from .opening import opened

__all__ = ["Instance"]

# Seconds that closing may take
CLOSE_SECONDS = 30.0

_log = logging.getLogger("trio_asyncio_io")


class Instance:
    """A resource from its opening to its closing, both in one task, because it may contain a nursery or a cancel scope.

    It is a system task: its first user may end long before its last one, so no nursery of a user could own it. At the
    end of the Trio run, it closes the resource.

    Args:
        name: Of the resource.
        make: Returns the resource; see `opened`.
        open_timeout: Seconds that opening may take.
        on_end: Called when the resource is closed or has failed.

    Attributes:
        value: The resource.
        is_open: Whether it can be used.
        is_awaited: Whether somebody waits for its opening or closing, and gets its exception. Otherwise it is logged.
        error: The exception of its opening, its closing, or a background task of its own.
        ready: Set when it is open, or has failed.
        ended: Set when it is closed, or has failed.
    """

    def __init__(
        self, name: str, make: Callable[[], Any], open_timeout: float, on_end: Callable[[Instance], None]
    ) -> None:
        self._name = name
        self._make = make
        self._open_timeout = open_timeout
        self._on_end = on_end
        self._opening = trio.CancelScope()
        self._in_use = trio.CancelScope()
        self._is_abandoned = False
        self.is_awaited = True
        self.value: Any = None
        self.is_open = False
        self.error: BaseException | None = None
        self.ready = trio.Event()
        self.ended = trio.Event()
        trio.lowlevel.spawn_system_task(self._run, name=f"trio_asyncio_io shared {name}")

    @property
    def is_ending(self) -> bool:
        """Whether it is being closed, or is closed."""
        return self._is_abandoned or self._in_use.cancel_called or self.ended.is_set()

    def keep(self) -> None:
        """Do not close it, because it has a user again."""
        self._in_use.deadline = inf

    def end_after(self, seconds: float) -> None:
        """Close it after so many seconds, unless `keep` is called before; cancel its opening at once."""
        if not self.ready.is_set():
            self._is_abandoned = True
            self._opening.cancel()
        elif seconds:
            self._in_use.deadline = trio.current_time() + seconds
        else:
            self._in_use.cancel()

    async def _run(self) -> None:
        try:
            with self._opening, trio.CancelScope() as closing:
                await self._own(closing)
            self._check(closing)
        except trio.Cancelled:  # the Trio run ends
            raise
        except BaseException as error:  # noqa: BLE001 - in a system task it would end the Trio run
            self.error = error
            if not self.is_awaited:
                _log.exception("the shared resource %r failed, or could not be closed", self._name)
        finally:
            self.is_open = False
            self.ready.set()
            self.ended.set()
            self._on_end(self)

    async def _own(self, closing: trio.CancelScope) -> None:
        self._opening.deadline = trio.current_time() + self._open_timeout
        async with opened(self._name, self._make()) as self.value:
            self._opening.deadline = inf
            self.is_awaited = False
            self.is_open = True
            self.ready.set()
            try:
                with self._in_use:
                    await trio.sleep_forever()
            finally:
                closing.shield = True
                closing.deadline = trio.current_time() + CLOSE_SECONDS

    def _check(self, closing: trio.CancelScope) -> None:
        if closing.cancelled_caught:
            raise trio.TooSlowError(f"the shared resource {self._name!r} was not closed within {CLOSE_SECONDS:g} s")
        if self._opening.cancelled_caught and not self._is_abandoned:
            raise TimeoutError(
                f"the shared resource {self._name!r} did not open within open_timeout={self._open_timeout:g} s. Check "
                "that the server to which it connects can be reached, or raise open_timeout"
            )
