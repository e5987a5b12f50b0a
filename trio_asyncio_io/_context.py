"""The context: each invocation sees the context variables of the operator's block, and no other invocation's."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from operator import is_

from trio.lowlevel import Task

__all__ = ["BlockContext"]


class BlockContext:
    """The context variables of the task that entered the operator's block, as they were then.

    A worker is one task and serves many elements. Between two of them its context is replaced by a new copy of this
    one, but only if the last invocation left a variable changed: with the same values, a context is as good as new.

    Attributes:
        size: The number of variables.
    """

    def __init__(self) -> None:
        self._context = copy_context()
        self._values = tuple(self._context.values())
        self.size = len(self._values)

    def run(self, function: Callable[[], None]) -> None:
        """Call the function with these variables."""
        self._context.run(function)

    def is_changed_in(self, context: Context) -> bool:
        """Whether a copy of this context has other variables or values by now."""
        # By identity: an equal value may be another object, and `==` would run the user's code
        return len(context) != self.size or not all(map(is_, context.values(), self._values))

    def renew(self, task: Task) -> None:
        """Give the task a new copy, which Trio uses from the task's next step on."""
        task.context = self._context.copy()
