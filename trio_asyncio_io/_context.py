"""Context variables: each invocation sees those of the operator's block, and none that another invocation has set."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, copy_context
from operator import is_

from trio.lowlevel import Task

__all__ = ["BlockContext"]


class BlockContext:
    """The context of the task that enters the operator's block, as it is at that moment.

    A worker is one task and serves many elements. Between two of them its context is replaced by a new copy of this
    one, but only if the last invocation changed a variable: otherwise its context still equals a new copy.

    Attributes:
        size: The number of variables.
    """

    def __init__(self) -> None:
        self._context = copy_context()
        self._values = tuple(self._context.values())
        self.size = len(self._values)

    def run(self, function: Callable[[], None]) -> None:
        """Call the function in this context."""
        self._context.run(function)

    def is_changed_in(self, context: Context) -> bool:
        """Whether a copy of this context has different variables or values now."""
        # By identity: `==` would run user code, and an equal value may be another object
        return len(context) != self.size or not all(map(is_, context.values(), self._values))

    def renew(self, task: Task) -> bool:
        """Give the task a new copy if the last invocation changed a variable. Returns whether it did."""
        if len(task.context) == self.size and not (self.size and self.is_changed_in(task.context)):
            return False
        self.restore(task)
        return True

    def restore(self, task: Task) -> None:
        """Give the task a new copy, which Trio uses from the task's next checkpoint on."""
        task.context = self._context.copy()
