"""The types of the operators' signatures: which source, function and options give which outputs.

A function may return one result or, with `flatten`, an iterable of outputs; it may take one value or, with `group`, a
list. That makes four shapes, each with a type of function and a `TypedDict` of keyword arguments. In each shape, the
source decides between bare outputs and `Marked` ones. A checker takes the first overload that fits, so the order is:

    1. `Source[ValueOfFunction]`    a source of Any, or an empty list, fits every overload. Its outputs are bare
    2. `MarkedSource[T]`            before `Source[T]`, because a function of `object` takes everything
    3. `Source[T]`
    4. `MixedSource[T]`             bare values beside records and watermarks
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Generic, Literal, Required, TypeAlias, TypedDict, TypeVar, final

from .._core.elements import Element, StreamRecord, Watermark
from .._core.options import Mode, OptionsArguments
from .._core.parameters import E
from .._core.snapshot import Snapshot
from .function import AsyncFunction
from .results import Results

T = TypeVar("T")
R = TypeVar("R")
V = TypeVar("V")
S = TypeVar("S")

Marked: TypeAlias = StreamRecord[T] | Watermark
Mixed: TypeAlias = T | StreamRecord[T] | Watermark

Source: TypeAlias = Iterable[T] | AsyncIterable[T]
# mypy joins a list of records and watermarks to `list[Element[T]]`
MarkedSource: TypeAlias = Iterable[Marked[T] | Element[T]] | AsyncIterable[Marked[T] | Element[T]]
MixedSource: TypeAlias = Iterable[Mixed[T]] | AsyncIterable[Mixed[T]]

Key: TypeAlias = Callable[[T], Hashable]
Running: TypeAlias = AbstractAsyncContextManager[Results[R, E]]

# A function of the records of a group. A result may be the exception of its record
GroupFunction: TypeAlias = (
    Callable[[list[T]], Awaitable[Sequence[R | Exception]]] | AsyncFunction[list[T], Sequence[R | Exception]]
)
FlatFunction: TypeAlias = Callable[[T], Awaitable[Iterable[R]]] | AsyncFunction[T, Iterable[R]]
FlatGroupFunction: TypeAlias = (
    Callable[[list[T]], Awaitable[Sequence[Iterable[R] | Exception]]]
    | AsyncFunction[list[T], Sequence[Iterable[R] | Exception]]
)


@final
class ValueOfFunction:
    """Not the type of any value: only Any fits it. mypy shows its name for a source of values of another type."""


class Single(OptionsArguments, Generic[T, R], total=False):
    """The options with a function of one value with one result."""

    timeout: Required[float]
    group: None
    flatten: Literal[False]
    restore: Snapshot[T, R] | None


class Flat(OptionsArguments, Generic[T, R], total=False):
    """The options with a function of one value with several outputs."""

    timeout: Required[float]
    group: None
    flatten: Required[Literal[True]]
    restore: Snapshot[T, R] | None


class Groups(OptionsArguments, Generic[T, R], total=False):
    """The options with a function of several values with a result for each."""

    timeout: Required[float]
    group: Required[int]
    flatten: Literal[False]
    restore: Snapshot[T, R] | None


class FlatGroups(OptionsArguments, Generic[T, R], total=False):
    """The options with a function of several values with several outputs for each."""

    timeout: Required[float]
    group: Required[int]
    flatten: Required[Literal[True]]
    restore: Snapshot[T, R] | None


class SingleMixed(OptionsArguments, total=False):
    """The options with a function of one value with one result, for a mixed source.

    Without `restore`: mypy would find Any for a call that restores a stored snapshot, which fits several overloads.
    """

    timeout: Required[float]
    group: None
    flatten: Literal[False]


class Put(TypedDict, Generic[V, S], total=False):
    """The options of `AsyncWaitOperator` alone: V is the value that the function takes, S the type of the source."""

    mode: Mode
    key: Key[V] | None
    source: S | None


class PutSingle(Single[T, R], Put[V, S], Generic[T, R, V, S], total=False):
    """The options of `AsyncWaitOperator` in this shape."""


class PutFlat(Flat[T, R], Put[V, S], Generic[T, R, V, S], total=False):
    """See `PutSingle`."""


class PutGroups(Groups[T, R], Put[V, S], Generic[T, R, V, S], total=False):
    """See `PutSingle`."""


class PutFlatGroups(FlatGroups[T, R], Put[V, S], Generic[T, R, V, S], total=False):
    """See `PutSingle`."""
