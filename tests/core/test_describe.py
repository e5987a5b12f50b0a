"""`describe` is short, has one line, and is cheap for large values."""

from __future__ import annotations

import tracemalloc
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pytest

from trio_asyncio_io import StreamRecord, Watermark
from trio_asyncio_io._values.describe import describe


class Point(NamedTuple):
    x: int
    y: str


@dataclass
class Row:
    id: int
    body: Any
    secret: str = field(default="", repr=False)


@dataclass
class Silent:
    body: Any

    def __repr__(self) -> str:
        return "Silent"


def test_a_description_is_one_line_of_limited_length() -> None:
    assert describe("a") == "'a'"
    assert describe(StreamRecord("two\nlines")) == r"StreamRecord(value='two\nlines', timestamp=None)"
    long = describe("x" * 1000)
    assert len(long) == 80
    assert long.endswith("…")


def test_the_lines_of_a_repr_are_joined() -> None:
    class Table:
        def __repr__(self) -> str:
            return "a\n  b"

    assert describe(Table()) == "a b"


def test_a_repr_that_raises_has_a_placeholder() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert describe(Broken()) == "<Broken whose repr raised RuntimeError>"


@dataclass
class Client:
    token: str

    def __call__(self) -> None: ...

    def ask(self) -> None: ...


@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (Client("SECRET"), "Client(…)"),
        (Client("SECRET").ask, "<bound method Client.ask>"),
        (partial(Client("SECRET").ask, "SECRET"), "partial(<bound method Client.ask>)"),
    ],
)
def test_a_function_is_shown_without_what_it_holds(function: Any, shown: str) -> None:
    assert describe(function) == shown
    assert describe([function]) == f"[{shown}]"


SHORT: list[Any] = [
    None,
    True,
    3,
    2.5,
    "",
    "it's",
    b"\x00",
    bytearray(b"a"),
    [],
    (),
    set(),
    {},
    [1],
    (1,),
    (1, "a"),
    {1},
    {"a": [1, 2], "b": None},
    frozenset({1}),
    OrderedDict(a=1),
    Point(1, "y"),
    Row(1, [Row(2, "b")], "s"),
    Silent([1]),
    StreamRecord((1, "a"), 7),
    Watermark(3),
    Row,
    len,
]


@pytest.mark.parametrize("value", SHORT, ids=repr)
def test_a_short_value_is_its_repr(value: Any) -> None:
    assert describe(value) == repr(value)


@pytest.mark.parametrize(
    "value",
    [list(range(99)), {str(each): each for each in range(99)}, [["a" * 99] * 9] * 9, Row(1, "b" * 99)],
    ids=type,
)
def test_a_long_value_is_the_start_of_its_repr(value: Any) -> None:
    assert describe(value) == repr(value)[:79] + "…"
    assert describe(value, 20) == repr(value)[:19] + "…"


class Counted:
    made = 0

    def __repr__(self) -> str:
        Counted.made += 1
        return "x"


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        tuple,
        lambda values: dict(enumerate(values)),
        lambda values: Row(1, [values]),
        lambda values: Point(1, values),
    ],
)
def test_only_the_first_items_of_a_large_container_are_read(wrap: Any) -> None:
    Counted.made = 0
    describe(wrap([Counted() for _ in range(10_000)]))
    assert Counted.made <= 80


@pytest.mark.parametrize("value", ["x" * 5_000_000, b"x" * 5_000_000, bytearray(5_000_000)], ids=type)
@pytest.mark.parametrize("wrap", [lambda value: value, StreamRecord, lambda value: [{"a": value}]])
def test_a_large_value_is_shortened_before_its_repr_is_computed(value: Any, wrap: Any) -> None:
    tracemalloc.start()
    try:
        describe(wrap(value))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000


def test_a_list_that_contains_itself_has_a_description() -> None:
    value: list[Any] = []
    value.append(value)
    assert describe(value).startswith("[[[")


def test_lone_surrogates_in_a_repr_are_escaped() -> None:
    class Surrogate:
        def __repr__(self) -> str:
            return "caf\u00e9 \ud800"

    assert describe(Surrogate()) == "caf\u00e9 \\ud800"
