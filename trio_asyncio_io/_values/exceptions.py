"""The exceptions of functions: read without raising, copied, and with notes that name the element and the attempt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from types import MemberDescriptorType
from typing import Any, TypeVar, cast


def attribute_of(owner: object, name: str) -> Any:
    """The attribute's value; None if it is missing or reading it raises."""
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001 - a property may raise anything, as httpx's `request` does
        return None


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The exceptions of a group and of its nested groups; any other exception alone."""
    pending = [error]
    while pending:
        error = pending.pop()
        if issubclass(type(error), BaseExceptionGroup):  # not `isinstance`, which reads `__class__`
            pending += reversed(cast(BaseExceptionGroup[BaseException], error).exceptions)
        else:
            yield error


def chain_of(error: BaseException) -> list[BaseException]:
    """The exception and its causes."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and all(cause is not seen for seen in chain):
        chain.append(cause)
        cause = cause.__cause__
    return chain


def text_of(error: BaseException) -> str:
    """The exception's message; a placeholder if its `__str__` raises."""
    try:
        return str(error)
    except Exception as problem:  # noqa: BLE001 - it must not hide the exception that is being reported
        return f"<{type(error).__name__} whose str raised {type(problem).__name__}>"


def set_on(error: BaseException, **attributes: Any) -> None:
    """Set attributes of the exception, which may be a frozen dataclass."""
    for name, value in attributes.items():
        BaseException.__setattr__(error, name, value)


E = TypeVar("E", bound=BaseException)


def copied(error: E) -> E:
    """A copy of the exception: type, arguments, attributes, cause, context, notes and traceback.

    If no faithful copy can be made, returns the exception itself.
    """
    for create in (copy, _copy_without_init):
        try:
            twin = create(error)
            _copy_slots(error, twin)
            if _is_faithful(error, twin):
                break
        except Exception:  # noqa: BLE001, S110 - an `__init__`, a `__new__` or a `__str__` may raise anything
            pass
    else:
        return error
    if hasattr(twin, "__notes__"):
        set_on(twin, __notes__=list(twin.__notes__))
    set_on(twin, __cause__=error.__cause__, __context__=error.__context__)
    set_on(twin, __suppress_context__=error.__suppress_context__)
    return twin.with_traceback(error.__traceback__)


def _copy_without_init(error: E) -> E:
    """A copy of an exception whose `__init__` takes other arguments than `args`, as in many libraries."""
    twin = type(error).__new__(type(error), *error.args)
    twin.__dict__.update(error.__dict__)
    return twin


def _copy_slots(error: BaseException, twin: BaseException) -> None:
    """Copy the attributes in slots, which `copy` leaves out for exceptions."""
    for base in type(error).__mro__:
        for name, slot in vars(base).items() if "__slots__" in vars(base) else ():
            if isinstance(slot, MemberDescriptorType) and hasattr(error, name):
                slot.__set__(twin, slot.__get__(error))


def _is_faithful(error: BaseException, twin: BaseException) -> bool:
    if twin is error or type(twin) is not type(error):
        return False
    return twin.args == error.args and vars(twin).keys() == vars(error).keys() and text_of(twin) == text_of(error)


def without_frames(error: E) -> E:
    """A copy without traceback, cause and context, which would retain the frames of the call and their variables."""
    twin = copied(error)
    if twin is not error:
        set_on(twin, __traceback__=None, __cause__=None, __context__=None)
    return twin


MAX_NOTES = 10


def add_note(error: BaseException, text: str) -> None:
    """Add a note to the exception, once. Does nothing if the exception does not accept notes.

    A function may raise one exception object for many elements, so it keeps only the latest `MAX_NOTES` notes.
    """
    notes = attribute_of(error, "__notes__") or []
    if isinstance(notes, list) and text not in notes:
        # Not `error.add_note`: a copy of the exception may share the list
        with suppress(Exception):  # a note must not replace the exception that it explains
            set_on(error, __notes__=[*notes, text][-MAX_NOTES:])
