"""The base class of policies."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, TypeVar

import trio

from .._core.describe import describe
from .._function import AsyncFunction, Wrapper, as_function, awaitable_from
from ._distinct_key import distinct_key
from ._users import Users

__all__ = ["Policy", "Wrapped", "call_when_idle"]

R = TypeVar("R")

_log = logging.getLogger("trio_asyncio_io")

Wrapped: TypeAlias = Callable[..., Awaitable[R]] | AsyncFunction[Any, R]


class Policy(Wrapper, AsyncFunction[Any, R]):
    """A function around an inner function, which is opened and closed with it.

    Several operators may use one policy at the same time: the first one opens it, and the last one closes it. A policy
    is pickled as its function and options; its state is not pickled.

    Args:
        function: An async callable or an `AsyncFunction`, of one or more arguments.
        key: The arguments -> hashable. Calls with equal keys are the same call. None: the arguments themselves.
        options: The other options of the policy, for pickling.
    """

    def __init__(self, function: Any, *, key: Callable[..., Hashable] | None = None, **options: Any) -> None:
        self.function = function
        self._inner = as_function(function)
        self._inner_flush: Callable[[], object] | None = None
        self._expose_optional_methods()
        self._users = Users()
        self._pending = 0
        self._flush_is_due = False
        self._key = key
        self._options = options if key is None else {"key": key, **options}

    def _expose_optional_methods(self) -> None:
        """Add those optional methods that the inner function has. The operator looks for them."""
        if callable(timeout := getattr(self._inner, "timeout", None)):
            self.timeout = timeout
        if callable(flush := getattr(self._inner, "flush", None)):
            self._inner_flush = flush
            if not hasattr(self, "flush"):
                object.__setattr__(self, "flush", self._forward_flush)

    def __reduce__(self) -> Any:
        return _recreate, (type(self), self.function, self._options)

    async def __call__(self, *arguments: Any) -> R:
        """The same as `invoke`, so that a policy is a callable too."""
        return await self.invoke(*arguments)

    async def open(self) -> None:
        """Open the inner function, unless another operator has opened it. Waits while another operator does so."""
        await self._users.add(self._open)

    async def close(self) -> None:
        """Close the inner function, unless another operator still uses it."""
        await self._users.remove(self._close)

    async def _open(self) -> None:
        """Open the policy for its first user."""
        if hasattr(self._inner, "open"):
            await self._inner.open()

    async def _close(self) -> None:
        """Close the policy after its last user."""
        if hasattr(self._inner, "close"):
            await self._inner.close()

    def key_of(self, arguments: tuple[Any, ...]) -> Hashable:
        """The key of a call. Keys of different types differ, such as 1, 1.0 and True.

        Raises:
            TypeError: The arguments are not hashable, and the policy needs a `key`.
        """
        key = arguments if self._key is None else self._key(*arguments)
        try:
            hash(key)
        except TypeError:
            name = type(self).__name__
            raise TypeError(f"{name} needs a hashable key, got {describe(key)}: give {name} key=") from None
        return distinct_key(key)

    def _call(self, *arguments: Any) -> Any:
        """The inner function's awaitable."""
        return awaitable_from(self._inner.invoke, *arguments)

    @contextmanager
    def _holding_flush(self) -> Iterator[None]:
        """A block in which an element has not reached the inner function yet. A flush must not overtake it."""
        self._pending += 1
        try:
            yield
        finally:
            self._pending -= 1
            if self._flush_is_due and not self._pending:
                self._flush_is_due = False
                call_when_idle(self._forward_flush)

    def _forward_flush(self) -> None:
        """Flush the inner function, after the pending elements have reached it."""
        assert self._inner_flush is not None
        if self._pending:
            self._flush_is_due = True
        else:
            self._inner_flush()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({describe(self.function)})"


def _recreate(policy: Any, function: Any, options: dict[str, Any]) -> Any:
    return policy(function, **options)


# The first pass over Trio's callbacks may belong to the current scheduler pass, and the second may precede tasks that
# were started in it.
_PASSES: Final = 3


def call_when_idle(method: Callable[[], object], passes: int = _PASSES) -> None:
    """Call the method once all tasks that are ready, or have just been started, have run until they wait.

    Args:
        method: Called by Trio's scheduler, so its exceptions are logged.
        passes: Passes over Trio's callbacks until then.
    """

    def call() -> None:
        if passes > 1:
            call_when_idle(method, passes - 1)
            return
        try:
            method()
        except Exception:  # noqa: BLE001 - it is logged
            _log.exception("flush() of the function raised")

    trio.lowlevel.current_trio_token().run_sync_soon(call)
