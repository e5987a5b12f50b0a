"""`shared`: a resource that all users of its name in a process share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from trio.lowlevel import enable_ki_protection

from .._core.checks import check_callable, check_name, check_seconds
from .._core.describe import describe
from .resource import resource_of_run
from .scope import present_scope

__all__ = ["shared"]

R = TypeVar("R")


class shared(Generic[R]):  # noqa: N801 - used like a function
    """A resource, such as a client or a cache, that all users of its name share (Flink's async resource sharing).

    Use it with `async with`, in functions, handlers and `open` methods, and anywhere else in Trio code. The first user
    opens the resource, and the last one closes it. An operator is a user from the first time that one of its calls uses
    the resource until it ends. So a call costs no more than two counts.

    One name is one resource in a Trio run, and so in a Python worker of Spark, where it stays open for 45 s after its
    last task; see `lingering`. `shared` objects with one name must have the same `make`, such as copies by a pickle.
    Another one is refused while the name is in use.

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

    Cancellation: a user that waits leaves at once, and others go on waiting. If there are none, it leaves once the
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

    @enable_ki_protection
    async def __aenter__(self) -> R:
        resource = resource_of_run(self.name)
        resource.check(self)
        scope = present_scope()
        if scope is not None:
            scope.hold(resource)
        value: R = await resource.enter()
        return value

    @enable_ki_protection
    async def __aexit__(self, *_: object) -> None:
        await resource_of_run(self.name).leave()

    def __reduce__(self) -> Any:
        return partial(shared, self.name, self.make, open_timeout=self.open_timeout), ()

    def __repr__(self) -> str:
        return f"shared({self.name!r}, {_with_place(self.make)}, open_timeout={self.open_timeout:g})"


def _with_place(make: Callable[[], Any]) -> str:
    """The name of a function and the line where it is defined; a lambda has no other name."""
    code = getattr(make, "__code__", None)
    return describe(make) if code is None else f"{code.co_name} of {Path(code.co_filename).name}:{code.co_firstlineno}"
