"""The policy: a function around a function, with the same life."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

import trio

from .._core.describe import describe
from .._function import AsyncFunction, Wrapper, as_function, awaitable_from
from ._distinct_key import distinct_key
from ._users import Users

__all__ = ["Policy", "Wrapped", "soon"]

R = TypeVar("R")

_log = logging.getLogger("trio_asyncio_io")

Wrapped: TypeAlias = Callable[..., Awaitable[R]] | AsyncFunction[Any, R]


class Policy(Wrapper, AsyncFunction[Any, R]):
    """What the policies share: the inner function, opened and closed with this one, and the key.

    Several operators may use one policy at the same time: the first one opens it, and the last one closes it.
    A policy pickles as what it was made of; what it remembers stays behind.

    Args:
        function: An async callable or an `AsyncFunction`, of one or more arguments.
        key: The arguments -> hashable; equal keys are the same call. None: the arguments themselves.
        options: What else the policy was made of, so that it can be made again.
    """

    def __init__(self, function: Any, *, key: Callable[..., Hashable] | None = None, **options: Any) -> None:
        self.function = function
        self._inner = as_function(function)
        # Two methods that the operator calls, and only if they are there
        if callable(on_timeout := getattr(self._inner, "timeout", None)):
            self.timeout = on_timeout
        self._inner_flush: Callable[[], object] | None = None
        if callable(flush := getattr(self._inner, "flush", None)):
            self._inner_flush = flush
            if not hasattr(self, "flush"):
                object.__setattr__(self, "flush", self._pass_flush_on)
        self._users = Users()
        self._under_way = 0
        self._flush_is_due = False
        self._key = key
        self._options = options if key is None else {"key": key, **options}

    def __reduce__(self) -> Any:
        return _made_again, (type(self), self.function, self._options)

    async def __call__(self, *arguments: Any) -> R:
        """The same as `invoke`, so that a policy is a callable too."""
        return await self.invoke(*arguments)

    async def open(self) -> None:
        """Open the inner function, unless another operator has it open. Waits while another one opens or closes it."""
        await self._users.add(self._open)

    async def close(self) -> None:
        """Close the inner function, unless another operator still has it open."""
        await self._users.remove(self._close)

    async def _open(self) -> None:
        """What the first user does."""
        if hasattr(self._inner, "open"):
            await self._inner.open()

    async def _close(self) -> None:
        """What the last user does."""
        if hasattr(self._inner, "close"):
            await self._inner.close()

    def key_of(self, arguments: tuple[Any, ...]) -> Hashable:
        """The key of a call. Keys of different type differ, as 1, 1.0 and True do.

        Raises:
            TypeError: The arguments cannot be hashed; says what to do.
        """
        key = arguments if self._key is None else self._key(*arguments)
        try:
            hash(key)
        except TypeError:
            name = type(self).__name__
            raise TypeError(f"{name} needs a hashable key, and {describe(key)} is none: give {name} key=") from None
        return distinct_key(key)

    def _call(self, *arguments: Any) -> Any:
        """The inner function's awaitable."""
        return awaitable_from(self._inner.invoke, *arguments)

    @contextmanager
    def _on_the_way(self) -> Iterator[None]:
        """Around what an element waits for before it comes to the inner function: a flush must not overtake it."""
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            if self._flush_is_due and not self._under_way:
                self._flush_is_due = False
                soon(self._pass_flush_on)

    def _pass_flush_on(self) -> None:
        """Tell the inner function that nobody else will call for a while: after those that are on their way to it."""
        assert self._inner_flush is not None
        if self._under_way:
            self._flush_is_due = True
        else:
            self._inner_flush()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({describe(self.function)})"


def _made_again(policy: Any, function: Any, options: dict[str, Any]) -> Any:
    return policy(function, **options)


def soon(method: Callable[[], object], turns: int = 3) -> None:
    """Call the method when all tasks that are ready, or were just started, have come as far as they come by themselves.

    Args:
        method: What it raises is logged: the scheduler calls it, and there is nobody to raise it to.
        turns: How often the queue of Trio's entry is gone through. The first time may be in this very turn of the
            scheduler, and the second one before the tasks that were started in it: hence 3.
    """

    def call() -> None:
        if turns > 1:
            soon(method, turns - 1)
            return
        try:
            method()
        except Exception:  # noqa: BLE001 - it is logged
            _log.exception("flush() of the function raised")

    trio.lowlevel.current_trio_token().run_sync_soon(call)
