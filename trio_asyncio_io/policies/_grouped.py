"""Grouping: concurrent calls that go out as one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import trio

from .._core.checks import check_flag, check_int, check_seconds
from .._core.describe import describe
from .._errors import NotAsyncError
from .._function import AsyncFunction
from ._fresh import fresh
from ._policy import Policy, soon
from ._shared import SharedCall

__all__ = ["grouped"]

R = TypeVar("R")

WrappedMany: TypeAlias = Callable[..., Awaitable[Sequence[R | Exception]]] | AsyncFunction[Any, Sequence[R | Exception]]


# Trio runs what is ready in random order, so who comes in every turn may leave one out.
QUIET_TURNS = 2


class _Group:
    """What goes out together.

    Attributes:
        values: What each member brought, by its number; a member that leaves takes it along.
        joined: How many members it ever had.
        is_due: Set when it shall go out.
        call: Its call, which begins with waiting for that; a member's number -> its result.
    """

    __slots__ = ("call", "is_due", "joined", "values")

    call: SharedCall[dict[int, Any]]

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}
        self.joined = 0
        self.is_due = trio.Event()


class grouped(Policy[R]):  # noqa: N801 - used like a function
    """A function whose concurrent calls are grouped into one call of a function of many.

    The inner function takes a list and gives a list of the same length: the results in the same order. An item
    that is an `Exception` is the error of that one element, and raised for it alone. (Flink's batched
    asynchronous I/O, FLINK-38825.)

    A group goes out when it has `size` elements, when `age` seconds have passed since the first of them joined,
    or at the end of the input, when nobody else will join. Each element still is an invocation of its own, in a
    slot of its own, so order, watermarks, timeout, retry, error policy and snapshot hold as for single calls. The
    operator's `capacity` therefore counts elements: at most capacity / size full groups are under way at once.
    Give a capacity of at least `size`, or groups wait for their `age`.

    Args:
        function: An async callable or an `AsyncFunction`, list of values -> list of results. Called with
            several arguments for each element, as a UDF of several columns is, it gets a list of tuples.
        size: Most elements of a group, at least 1.
        age: Most seconds that the first element waits for others, at least 0, on Trio's clock. 0: a group goes
            out as soon as two turns of the scheduler bring nobody else. `math.inf`: it waits for `size`, or for
            the end of the input.
        split: True: where the call for several elements raises an `Exception`, its two halves are called
            instead, one after the other, down to single elements: an exception is for the element that causes
            it. All of that has to be done within the elements' timeout.

    Attributes:
        calls: Calls made, those for halves included.
        sent: Elements in them.

    Raises:
        ValueError, TypeError: An argument is out of its range; or, for every element of the group, the
            function's result has another length than its argument, or is no list.
        Exception: What the group's call raised: each element gets a copy, if it can be copied.

    Cancellation: an element whose deadline strikes just leaves; before its group went out, it takes its value
    along. The last one to leave cancels the call, and waits until it has unwound. A `timeout` method of the
    inner function is asked for the one element.

    Example:
        async def fetch_many(codes: list[str]) -> list[str | Exception]: ...

        lookup = cached(single_flight(grouped(fetch_many, size=50, age=0.02)))
    """

    def __init__(self, function: WrappedMany[R], *, size: int = 100, age: float = 0.01, split: bool = False) -> None:
        super().__init__(function, size=size, age=age, split=split)
        self._size = check_int("size", size, at_least=1)
        self._age = check_seconds("age", age)
        self._split = check_flag("split", split)
        self._open_group: _Group | None = None
        self.calls = 0
        self.sent = 0

    async def invoke(self, *arguments: Any) -> R:
        """The result of this element, from the call of the group that it joins."""
        group = self._open_group
        if group is None or group.call.is_abandoned:
            group = self._new_group()
        number = group.joined
        group.joined += 1
        group.values[number] = arguments[0] if len(arguments) == 1 else arguments
        if len(group.values) >= self._size:
            self._send_out(group)
        try:
            results = await group.call.wait()
        finally:
            group.values.pop(number, None)
        result: R = results[number]
        if isinstance(result, Exception):
            raise fresh(result)
        return result

    def flush(self) -> None:
        """Send the open group out: nobody else will join it for a while. Synchronous."""
        if self._open_group is not None:
            self._send_out(self._open_group)
        if self._inner_flush is not None:
            soon(self._inner_flush)  # when the group has come there

    def _new_group(self) -> _Group:
        group = _Group()
        group.call = SharedCall(lambda: self._results(group))
        group.call.start("trio_asyncio_io group")
        self._open_group = group
        return group

    def _send_out(self, group: _Group) -> None:
        group.is_due.set()
        if self._open_group is group:
            self._open_group = None

    async def _results(self, group: _Group) -> dict[int, Any]:
        try:
            await self._due(group)
        finally:
            self._send_out(group)
        await trio.lowlevel.checkpoint_if_cancelled()  # all may have left in this very turn
        numbers, values = list(group.values), list(group.values.values())
        return dict(zip(numbers, await self._results_of(values), strict=True))

    async def _due(self, group: _Group) -> None:
        """Wait until the group shall go out."""
        if self._age:
            with trio.move_on_after(self._age):
                await group.is_due.wait()
            return
        joined = quiet = 0
        while quiet < QUIET_TURNS and not group.is_due.is_set():
            quiet = quiet + 1 if group.joined == joined else 0
            joined = group.joined
            await trio.lowlevel.checkpoint()

    async def _results_of(self, values: list[Any]) -> Sequence[Any]:
        self.calls += 1
        self.sent += len(values)
        try:
            results = await self._call(list(values))
        except NotAsyncError:
            raise
        except Exception as error:
            if not self._split:
                raise
            if len(values) == 1:
                return [error]
        else:
            return self._checked(results, values)
        half = len(values) // 2
        return [*await self._results_of(values[:half]), *await self._results_of(values[half:])]

    def _checked(self, results: Any, values: list[Any]) -> Sequence[Any]:
        if not isinstance(results, list | tuple):
            raise TypeError(f"the grouped function must return a list, but {self} returned {describe(results)}")
        if len(results) != len(values):
            raise ValueError(
                f"the grouped function must return as many results as it gets values, but {self} returned "
                f"{len(results)} for {len(values)}"
            )
        return results
