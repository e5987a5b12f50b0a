"""A resource with a name, and the count of its users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import trio
from trio.lowlevel import RunVar

from .._core.checks import check_seconds
from .._exceptions import copied
from .definition import parts_of
from .instance import Instance

__all__ = ["Definition", "Resource", "lingering", "resource_of_run"]

_LINGER: ContextVar[float] = ContextVar("trio_asyncio_io_linger", default=0.0)


class Definition(Protocol):
    """What a user states about a resource."""

    name: str
    open_timeout: float

    def make(self) -> Any:
        """Returns the resource."""


class Resource:
    """A resource of the present Trio run. The first user opens it, and the last one closes it.

    Args:
        name: Its name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._users = 0
        self._instance: Instance | None = None
        self._definition: Definition | None = None

    def check(self, definition: Definition) -> None:
        """Refuse another definition than that in use. A resource that only lingers is closed, and replaced.

        Raises:
            ValueError: It differs.
        """
        known = self._definition
        is_same = known is None or known is definition or _parts(known) == _parts(definition)
        if self._users and not is_same:
            raise ValueError(
                f"two different shared resources have the name {self._name!r}: {known} is in use, and {definition} was "
                "given. Define it once and import it, or give them different names"
            )
        if self._instance is not None and not is_same:
            self._instance.end_after(0.0)
        if not self._users:
            self._definition = definition

    def join(self) -> None:
        """Add a user that waits for nothing."""
        self._users += 1
        if self._users == 1 and self._instance is not None:
            self._instance.keep()

    async def enter(self) -> Any:
        """Add a user, whose definition was checked, and return the resource. Opens it if necessary.

        Raises:
            Exception: Opening it failed. Each user that waited for it gets a copy. The next one opens it again.

        Cancellation: the user is not added. Others go on waiting; if there are none, the opening is cancelled, and has
        unwound.
        """
        self.join()
        try:
            instance = self._instance
            if instance is not None and instance.is_open and not instance.is_ending:
                return instance.value
            return await self._opened()
        except BaseException:
            await self.leave()
            raise

    async def leave(self) -> None:
        """Remove a user. After the last one, close the resource, at once or at the end of its linger time.

        Raises:
            Exception: Closing it raised.
        """
        self._users -= 1
        instance = self._instance
        if self._users:
            return
        if instance is None:
            self._forget()
            return
        seconds = _LINGER.get()
        instance.is_awaited = not seconds
        instance.end_after(seconds)
        if not seconds or instance.is_ending:
            with trio.CancelScope(shield=True):
                await instance.ended.wait()
            if instance.error is not None:
                raise instance.error

    async def _opened(self) -> Any:
        while (instance := self._instance) is not None and instance.is_ending:
            await instance.ended.wait()
        if instance is None:
            definition = self._definition
            assert definition is not None
            instance = Instance(self._name, definition.make, definition.open_timeout, self._on_end)
            self._instance = instance
        await instance.ready.wait()
        if instance.error is not None:
            raise copied(instance.error)
        return instance.value

    def _on_end(self, instance: Instance) -> None:
        if self._instance is instance:
            self._instance = None
            self._forget()

    def _forget(self) -> None:
        if not self._users:
            self._definition = None
            _of_run().pop(self._name, None)


def _parts(definition: Definition) -> Any:
    return parts_of(definition.make), definition.open_timeout


_RESOURCES: RunVar[dict[str, Resource]] = RunVar("trio_asyncio_io resources")


def resource_of_run(name: str) -> Resource:
    """The resource with this name in the present Trio run."""
    resources = _of_run()
    resource = resources.get(name)
    if resource is None:
        resource = resources[name] = Resource(name)
    return resource


def _of_run() -> dict[str, Resource]:
    try:
        return _RESOURCES.get()
    except LookupError:
        _RESOURCES.set({})
        return _RESOURCES.get()


@contextmanager
def lingering(seconds: float) -> Iterator[None]:
    """Within this block, shared resources stay open for a while after their last user has left.

    So operators that run one after another use the same connections. A resource that is still open at the end of the
    Trio run is closed there. An exception of such a late closing is logged. Experimental: it may change in any release.

    Args:
        seconds: At least 0 and finite. A later user within this time uses the open resource.

    Raises:
        TypeError, ValueError: `seconds` is out of its range.

    Example:
        with lingering(60.0):
            async for request in requests:
                await enrich(request)
    """
    token = _LINGER.set(check_seconds("seconds", seconds, finite=True))
    try:
        yield
    finally:
        _LINGER.reset(token)
