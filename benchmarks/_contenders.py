"""Contenders: this operator and alternatives that make many calls at once in this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

from trio_asyncio_io import AsyncWaitOperator

from ._backends import TRIO, Backend
from ._loops import worker_loop

NOT_INSTALLED = "not installed: .ci/just bench installs it"
Call = Callable[[int], Awaitable[Any]]
Received = Callable[[], object]
# The call, the number of elements, the capacity, the timeout in seconds, and a callback for each received result
Loop = Callable[[Call, int, int, float, Received], Awaitable[None]]

# The callback that does nothing. A Python function would add a fortieth to the cost of an element.
NOTHING: Received = bool


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to make the calls.

    Attributes:
        name: Its name in tables.
        loop: Makes all calls, and reports each received result.
        backend: Its event loop.
        package: The package that it needs, or None.
        has_stream: Whether it returns results while it runs. Otherwise a finished call counts as received.
    """

    name: str
    loop: Loop
    backend: Backend = field(default=TRIO, kw_only=True)
    package: str | None = field(default=None, kw_only=True)
    has_stream: bool = field(default=True, kw_only=True)

    @property
    def missing(self) -> str:
        """How to install the package if it is missing, else an empty string."""
        if self.package is None or find_spec(self.package) is not None:
            return ""
        return NOT_INSTALLED


async def with_operator(
    call: Call, elements: int, capacity: int, seconds: float, received: Received = NOTHING, **options: Any
) -> None:
    """The complete operator, with a consumer that drops the results, and then the dead letters."""
    source = range(elements)
    async with AsyncWaitOperator(call, source=source, capacity=capacity, timeout=seconds, **options) as operator:
        async for _ in operator.output:
            received()
        async for _ in operator.output.dead_letters:
            received()


def ours(name: str, **options: Any) -> Contender:
    """The operator with these options."""
    return Contender(name, partial(with_operator, **options))


FLOOR = Contender("bare worker loop", worker_loop, has_stream=False)
