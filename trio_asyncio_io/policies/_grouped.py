"""The policy `grouped`: concurrent calls are made as one call of a function of many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import trio

from .._core.checks import check_flag, check_int, check_seconds
from .._core.describe import describe
from .._errors import NotAsyncError, copied
from .._function import AsyncFunction
from ._policy import Policy, call_when_idle
from ._shared_call import SharedCall

__all__ = ["grouped"]

R = TypeVar("R")

WrappedMany: TypeAlias = Callable[..., Awaitable[Sequence[R | Exception]]] | AsyncFunction[Any, Sequence[R | Exception]]


# Not 1: Trio runs ready tasks in random order, so a pass in which nobody joins may precede one in which somebody does.
QUIET_PASSES: Final = 2


class _Group:
    """Elements that are sent together.

    Attributes:
        values: The value of each member, by its number. A member that leaves removes its value.
        joined: The number of members so far, including those that have left.
        is_due: Set when the group must be sent.
        call: Waits for that, and then calls the inner function. Its result maps a member's number to its result.
    """

    __slots__ = ("call", "is_due", "joined", "values")

    call: SharedCall[dict[int, Any]]

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}
        self.joined = 0
        self.is_due = trio.Event()


class grouped(Policy[R]):  # noqa: N801 - used like a function
    """A function whose concurrent calls are grouped into one call of a function of many.

    The inner function takes a list and returns a list of the same length, with the results in the same order. An
    `Exception` among the results is the failure of that one element, and is raised for it alone. (Flink's batched
    asynchronous I/O, FLINK-38825.)

    A group is sent when it has `size` elements, when `age` seconds have passed since its first element joined, or at
    the end of the input, when nobody else will join. Each element is still an invocation of its own, with a slot of its
    own, so order, watermarks, timeout, retry, error policy and snapshot work as with single calls. The operator's
    `capacity` counts elements, so at most capacity / size full groups are in flight at once. Use a capacity of at least
    `size`, or groups will wait for their `age`.

    Args:
        function: An async callable or an `AsyncFunction`, list of values -> list of results. If each element has
            several arguments, as with a UDF of several columns, the values are tuples.
        size: Upper limit of elements in a group, at least 1.
        age: Upper limit of seconds for which the first element waits for others, at least 0, on Trio's clock. 0: a
            group is sent after two scheduler passes in which nobody joined. `math.inf`: it waits for `size`, or for the
            end of the input.
        split: True: if the call for several elements raises an `Exception`, its two halves are called instead, one
            after the other, down to single elements. So only the element that causes an exception fails. All calls
            must end within the elements' timeout.

    Attributes:
        calls: Calls made, including those for halves.
        sent: Elements in these calls.

    Raises:
        ValueError, TypeError: An argument is out of its range. Or, for every element of the group: the function did not
            return a list, or its length differs from the number of values.
        Exception: The exception of the group's call. Each element gets a copy, unless it cannot be copied.

    Cancellation: an element whose deadline expires leaves at once. Its value is not sent if the group has not been
    sent. The last element to leave cancels the call, and leaves once it has unwound. A `timeout` method of the inner
    function is called for the one element.

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
            self._send(group)
        try:
            results = await group.call.wait()
        finally:
            group.values.pop(number, None)
        result: R = results[number]
        if isinstance(result, Exception):
            raise copied(result)
        return result

    def flush(self) -> None:
        """Send the open group, because nobody else will join it for a while. Synchronous."""
        if self._open_group is not None:
            self._send(self._open_group)
        if self._inner_flush is not None:
            call_when_idle(self._inner_flush)  # after the group has reached the inner function

    def _new_group(self) -> _Group:
        group = _Group()
        group.call = SharedCall(lambda: self._results_by_number(group))
        group.call.start("trio_asyncio_io group")
        self._open_group = group
        return group

    def _send(self, group: _Group) -> None:
        group.is_due.set()
        if self._open_group is group:
            self._open_group = None

    async def _results_by_number(self, group: _Group) -> dict[int, Any]:
        try:
            await self._wait_until_due(group)
        finally:
            self._send(group)
        await trio.lowlevel.checkpoint_if_cancelled()  # all members may have left in this scheduler pass
        numbers, values = list(group.values), list(group.values.values())
        return dict(zip(numbers, await self._results(values), strict=True))

    async def _wait_until_due(self, group: _Group) -> None:
        if self._age:
            with trio.move_on_after(self._age):
                await group.is_due.wait()
            return
        joined = quiet = 0
        while quiet < QUIET_PASSES and not group.is_due.is_set():
            quiet = quiet + 1 if group.joined == joined else 0
            joined = group.joined
            await trio.lowlevel.checkpoint()

    async def _results(self, values: list[Any]) -> Sequence[Any]:
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
        return [*await self._results(values[:half]), *await self._results(values[half:])]

    def _checked(self, results: Any, values: list[Any]) -> Sequence[Any]:
        if not isinstance(results, list | tuple):
            raise TypeError(f"the grouped function must return a list, but {self} returned {describe(results)}")
        if len(results) != len(values):
            raise ValueError(
                f"the grouped function must return as many results as it gets values, but {self} returned "
                f"{len(results)} for {len(values)}"
            )
        return results
