"""Exception groups: which exceptions leave the operator's block, and in which form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import trio

__all__ = ["combine", "flatten", "is_cancelled", "is_caused_by", "reraise", "split"]


def split(
    error: BaseException | None, condition: Callable[[BaseException], bool]
) -> tuple[BaseException | None, BaseException | None]:
    """The part of an exception that meets the condition, and the rest. An exception that is not split stays itself."""
    if not isinstance(error, BaseExceptionGroup):
        return (error, None) if error is not None and condition(error) else (None, error)
    matched, rest = error.split(condition)
    if matched is None:
        return None, error
    return (error, None) if rest is None else (matched, rest)


def flatten(error: BaseException | None) -> tuple[BaseException | None, ...]:
    """The exceptions of a group, or the exception itself."""
    return error.exceptions if isinstance(error, BaseExceptionGroup) else (error,)


def combine(errors: Iterable[BaseException | None]) -> BaseException | None:
    """The exception, or a group of them if they are several. An exit that several tasks raised counts once."""
    different: dict[Any, BaseException] = {}
    for error in errors:
        if error is not None:
            is_exit = isinstance(error, SystemExit | KeyboardInterrupt)
            different.setdefault((type(error), repr(error.args)) if is_exit else id(error), error)
    if len(different) > 1:
        return BaseExceptionGroup("the operator and its block both failed", list(different.values()))
    return next(iter(different.values()), None)


def reraise(error: BaseException) -> None:
    """Raise an exception without changing its context."""
    context = error.__context__
    try:
        raise error
    finally:
        BaseException.__setattr__(error, "__context__", context)  # it may be a frozen dataclass


def is_cancelled(error: BaseException) -> bool:
    """Whether this is Trio's cancellation."""
    return isinstance(error, trio.Cancelled)


def is_caused_by(failure: Exception | None) -> Callable[[BaseException], bool]:
    """Matches the exception that `put` raised because the operator had failed."""

    def matches(error: BaseException) -> bool:
        return failure is not None and isinstance(error, trio.BrokenResourceError) and error.__cause__ is failure

    return matches
