"""Sharing by name: a resource that all users of its name in a Trio run share, from its opening to its closing.

    shared        what a user writes: the name, and how to make the resource
    Resource      the name in the present Trio run, with the count of its users
    Scope         an operator as a user of resources
    Instance      one opening, and the task that owns it

Two definitions of one name must be equal, even after a pickle: see `definition`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import cached_property, partial
from inspect import isawaitable
from math import inf
from pathlib import Path
from typing import Any, Generic, TypeVar, overload
from weakref import WeakKeyDictionary

import trio
from trio.lowlevel import RunVar

from .._values.checks import check_callable, check_name, check_seconds
from .._values.describe import describe
from .._values.exceptions import copied
from .calls import nurseries_of_call
from .definition import parts_of
from .errors import combine, reraise
from .tasks import dict_of_run, uninterruptible

R = TypeVar("R")


@uninterruptible
class shared(Generic[R]):  # noqa: N801 - used like a function
    """A resource, such as a client or a cache, that all users of its name share (Flink's async resource sharing).

    Use it with `async with`, in functions, handlers and `open` methods, and anywhere else in Trio code. The first user
    opens the resource, and the last one closes it. An operator is a user from the first time that one of its calls uses
    the resource until it ends.

    One name is one resource in a Trio run, and so in a Python worker of Spark, where it stays open for 45 s after its
    last task; see `lingering`. `shared` objects with one name must have the same `make`, such as copies by a pickle.
    Another one is refused while the name is in use. Two `make` are the same if they have the same name and code, and
    equal default values and values that they close over or are bound to. Those are compared by what a pickle would
    store of them; one that cannot be pickled equals only itself. Global variables are not compared.

    Users that come while the resource is being opened wait for that one opening. If it fails, each of them gets the
    exception, and the next user tries again. Waiting counts towards the timeout of an element. To open it before the
    first element, enter it in `open` of an `AsyncFunction`.

    It is opened and closed in a task of its own, so it may contain nurseries. It does not see the context variables of
    its users. If a task of its own raises, the exception is logged, and the next user opens it again.

    Args:
        name: Its name. Choose one for each server and kind of client.
        make: Returns one of the following. A context manager, async or not, which is entered; an awaitable of a
            resource; an `AsyncFunction` or a policy, which is opened; an object with an `aclose` or `close`, which is
            called at the end; or any other object.
        open_timeout: Seconds that opening may take, above 0; `math.inf` for no limit.

    Raises:
        TypeError, ValueError: An argument is out of its range. From `async with`: another resource with this name is in
            use, or its context manager returns None.
        TimeoutError: From `async with`: it did not open within `open_timeout`.
        trio.TooSlowError: From the end of the last user: it was not closed within 30 s.

    Cancellation: a user that waits leaves immediately, and others go on waiting. If there are none, it leaves once the
    opening was cancelled and has unwound. Closing is shielded, for at most 30 s.

    Example:
        weather = shared("weather", lambda: httpx.AsyncClient(base_url="http://127.0.0.1:8000"))

        async def temperature(code):
            async with weather as client:
                return (await client.get(f"/{code}")).json()["temperature"]
    """

    @overload
    def __init__(
        self, name: str, make: Callable[[], AbstractAsyncContextManager[R]], *, open_timeout: float = 30.0
    ) -> None: ...
    @overload
    def __init__(
        self, name: str, make: Callable[[], AbstractContextManager[R]], *, open_timeout: float = 30.0
    ) -> None: ...
    @overload
    def __init__(self, name: str, make: Callable[[], Awaitable[R]], *, open_timeout: float = 30.0) -> None: ...
    @overload
    def __init__(self, name: str, make: Callable[[], R], *, open_timeout: float = 30.0) -> None: ...
    def __init__(self, name: str, make: Callable[[], Any], *, open_timeout: float = 30.0) -> None:
        self.name = check_name("name", name)
        self.make = check_callable("make", make)
        self.open_timeout = check_seconds("open_timeout", open_timeout, positive=True)

    async def __aenter__(self) -> R:
        resource = resource_of_run(self.name)
        resource.check(self, self._parts)
        scope = present_scope()
        if scope is not None:
            scope.hold(resource)
        value: R = await resource.enter()
        return value

    async def __aexit__(self, *_: object) -> None:
        await resource_of_run(self.name).leave()

    @cached_property
    def _parts(self) -> Any:
        """What is equal for equal definitions."""
        return parts_of(self.make), self.open_timeout

    def __reduce__(self) -> Any:
        return partial(shared, self.name, self.make, open_timeout=self.open_timeout), ()

    def __repr__(self) -> str:
        return f"shared({self.name!r}, {_with_place(self.make)}, open_timeout={self.open_timeout:g})"


def _with_place(make: Callable[[], Any]) -> str:
    """The name of a function and the line where it is defined; a lambda has no other name."""
    code = getattr(make, "__code__", None)
    return describe(make) if code is None else f"{code.co_name} of {Path(code.co_filename).name}:{code.co_firstlineno}"


_LINGER: ContextVar[float] = ContextVar("trio_asyncio_io_linger", default=0.0)


class Resource:
    """A resource of the present Trio run. The first user opens it, and the last one closes it.

    Args:
        name: Its name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._users = 0
        self._instance: Instance | None = None
        self._definition: shared[Any] | None = None
        self._parts: Any = None

    def check(self, definition: shared[Any], parts: Any) -> None:
        """Refuse a definition that differs from the one in use. A resource that only lingers is closed, and replaced.

        Args:
            definition: The given one.
            parts: What is equal for equal definitions.

        Raises:
            ValueError: It differs.
        """
        is_same = self._definition is None or parts == self._parts
        if self._users and not is_same:
            raise ValueError(
                f"two different shared resources have the name {self._name!r}: {self._definition} is in use, and "
                f"{definition} was given. Define it once and import it, or give them different names"
            )
        if not is_same and self._instance is not None:
            self._instance.end_after(0.0)
        if not self._users:
            self._definition, self._parts = definition, parts

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
            if instance is not None and instance.ready.is_set() and not instance.is_ending:
                return instance.value
            return await self._opened()
        except BaseException:
            await self.leave()
            raise

    async def leave(self) -> None:
        """Remove a user. After the last one, close the resource, immediately or at the end of its linger time.

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
            assert self._definition is not None
            instance = self._instance = Instance(self._definition, self._on_end)
        await instance.ready.wait()
        if instance.error is not None:
            raise copied(instance.error)
        return instance.value

    def _on_end(self) -> None:
        self._instance = None
        self._forget()

    def _forget(self) -> None:
        if not self._users:
            dict_of_run(_RESOURCES).pop(self._name, None)


_RESOURCES: RunVar[dict[str, Resource]] = RunVar("trio_asyncio_io resources")


def resource_of_run(name: str) -> Resource:
    """The resource with this name in the present Trio run."""
    resources = dict_of_run(_RESOURCES)
    resource = resources.get(name)
    if resource is None:
        resource = resources[name] = Resource(name)
    return resource


class Scope:
    """Uses things on behalf of an operator, from the first time that one of its calls uses them until `end`."""

    def __init__(self) -> None:
        self._used: dict[Resource, None] = {}
        self._has_ended = False

    def hold(self, thing: Resource) -> None:
        """Use it until the end."""
        if thing not in self._used and not self._has_ended:
            thing.join()
            self._used[thing] = None

    def include(self, nursery: trio.Nursery) -> None:
        """The tasks of this nursery, and theirs, are in this scope."""
        _SCOPES[nursery] = self

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The present task is in this scope, during the block."""
        token = _ENTERED.set(self)
        try:
            yield
        finally:
            _ENTERED.reset(token)

    async def end(self) -> None:
        """Leave everything, the latest first.

        Raises:
            BaseException: Closing a resource raised, or an interrupt came.
        """
        self._has_ended = True
        errors: list[BaseException] = []
        while self._used:
            thing, _ = self._used.popitem()
            try:
                await thing.leave()
            except BaseException as error:  # noqa: BLE001 - it is raised when the others are left, too
                errors.append(error)
        if errors:
            reraise(combine("several shared resources failed to close", errors) or errors[0])


_SCOPES: WeakKeyDictionary[trio.Nursery, Scope] = WeakKeyDictionary()

# Not set in the tasks that make calls: a context variable of the operator's would cost each of its elements time
_ENTERED: ContextVar[Scope | None] = ContextVar("trio_asyncio_io_scope", default=None)


def present_scope() -> Scope | None:
    """The scope of the outermost operator that the present task works for. An inner one may end much earlier."""
    scope = _ENTERED.get()
    for nursery in nurseries_of_call():
        scope = _SCOPES.get(nursery, scope)
    return scope


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


# Seconds that closing may take
CLOSE_SECONDS = 30.0

_log = logging.getLogger("trio_asyncio_io")


class Instance:
    """A resource from its opening to its closing, both in one task, because it may contain a nursery or a cancel scope.

    It is a system task: its first user may end long before its last one, so no nursery of a user could own it. At the
    end of the Trio run, it closes the resource.

    Args:
        definition: How to make it.
        on_end: Called when the resource is closed or has failed.

    Attributes:
        value: The resource, if it is open.
        is_awaited: Whether somebody waits for its opening or closing, and gets its exception. Otherwise it is logged.
        error: The exception of its opening, its closing, or a background task of its own.
        ready: Set when it is open, or has failed.
        ended: Set when it is closed, or has failed.
    """

    def __init__(self, definition: shared[Any], on_end: Callable[[], None]) -> None:
        self.value: Any = None
        self.is_awaited = True
        self.error: BaseException | None = None
        self.ready, self.ended = trio.Event(), trio.Event()
        self._definition = definition
        self._on_end = on_end
        self._opening, self._in_use = trio.CancelScope(), trio.CancelScope()
        self._is_abandoned = False
        trio.lowlevel.spawn_system_task(self._run, name=f"trio_asyncio_io shared {definition.name}")

    @property
    def is_ending(self) -> bool:
        """Whether it is being closed, or is closed."""
        return self._is_abandoned or self._in_use.cancel_called or self.ended.is_set()

    def keep(self) -> None:
        """Do not close it, because it has a user again."""
        self._in_use.deadline = inf

    def end_after(self, seconds: float) -> None:
        """Close it after these seconds, unless `keep` is called before; cancel its opening immediately."""
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
                _log.exception("the shared resource %r failed, or could not be closed", self._definition.name)
        finally:
            self.ready.set()
            self.ended.set()
            self._on_end()

    async def _own(self, closing: trio.CancelScope) -> None:
        self._opening.deadline = trio.current_time() + self._definition.open_timeout
        async with opened(self._definition.name, self._definition.make()) as self.value:
            self._opening.deadline = inf
            self.is_awaited = False
            self.ready.set()
            try:
                with self._in_use:
                    await trio.sleep_forever()
            finally:
                closing.shield = True
                closing.deadline = trio.current_time() + CLOSE_SECONDS

    def _check(self, closing: trio.CancelScope) -> None:
        name, open_timeout = self._definition.name, self._definition.open_timeout
        if closing.cancelled_caught:
            raise trio.TooSlowError(f"the shared resource {name!r} was not closed within {CLOSE_SECONDS:g} s")
        if self._opening.cancelled_caught and not self._is_abandoned:
            raise TimeoutError(
                f"the shared resource {name!r} did not open within open_timeout={open_timeout:g} s. Check "
                "that the server to which it connects can be reached, or raise open_timeout"
            )


# Their context managers acquire them
_LOCKS = (trio.Lock, trio.StrictFIFOLock, trio.Semaphore, trio.CapacityLimiter, trio.Condition)


@asynccontextmanager
async def opened(name: str, made: Any) -> AsyncIterator[Any]:
    """A resource, open during the block.

    Args:
        name: In errors.
        made: A context manager, async or not; an awaitable of a resource; an object with `open`, `invoke` and `close`,
            such as a policy; an object with `aclose` or `close`; or any other object.

    Raises:
        TypeError: The value of the context manager is None.
    """
    kind = type(made)
    if hasattr(kind, "__aenter__") and not issubclass(kind, _LOCKS):
        async with made as value:
            yield _checked(name, value)
    elif hasattr(kind, "__enter__"):
        with made as value:
            yield _checked(name, value)
    elif isawaitable(made):
        async with opened(name, await made) as value:
            yield value
    else:
        await _call(getattr(made, "open", None) if hasattr(made, "invoke") else None)
        try:
            yield made
        finally:
            await _call(getattr(made, "aclose", None) or getattr(made, "close", None))


def _checked(name: str, value: Any) -> Any:
    if value is None:
        raise TypeError(
            f"the context manager of the shared resource {name!r} returns None when it is entered: let it return the "
            "resource"
        )
    return value


async def _call(method: Callable[[], Any] | None) -> None:
    result = method() if callable(method) else None
    if isawaitable(result):
        await result
