"""Definitions: which callables count as equal."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from trio_asyncio_io._sharing import parts_of

HOST = "one"


class Client:
    def __init__(self, url: str = "", **options: Any) -> None:
        self.url = url

    def connect(self) -> None: ...


def with_url(url: Any) -> Callable[[], Any]:
    return lambda: Client(url)


def with_default(size: int) -> Callable[[], Any]:
    def make(size: int = size) -> Any:
        return Client(str(size))

    return make


def with_global(host: str) -> Callable[[], Any]:
    namespace: dict[str, Any] = {"Client": Client, "HOST": host}
    exec("def make():\n    return Client(HOST)", namespace)  # as a function that was pickled by its value
    return namespace["make"]  # type: ignore[no-any-return]


def recursive() -> Callable[[], Any]:
    def make() -> Any:
        return make

    return make


EQUAL: dict[str, Callable[[], Any]] = {
    "closure": lambda: with_url("a"),
    "closure with a dict": lambda: with_url({"a": [1, 2.0, None]}),
    "closure with an object that cannot be compared": lambda: with_url(Client()),
    "default": lambda: with_default(3),
    "global": lambda: with_global("a"),
    "class": lambda: Client,
    "partial": lambda: partial(Client, "a", size=1),
    "method": lambda: Client().connect,
    "function of a module": lambda: math.sqrt,
    "function that refers to itself": recursive,
}


@pytest.mark.parametrize("make", EQUAL.values(), ids=list(EQUAL))
def test_two_definitions_from_the_same_parts_are_equal(make: Callable[[], Any]) -> None:
    assert parts_of(make()) == parts_of(make())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (with_url("a"), with_url("b")),
        (with_url(1), with_url(True)),
        (with_default(3), with_default(4)),
        (partial(Client, "a"), partial(Client, "b")),
        (Client, partial(Client)),
        (lambda: Client("a"), lambda: Client("b")),
        (with_url, with_default),
    ],
    ids=["closure", "type", "default", "partial", "kind", "constant", "address"],
)
def test_definitions_with_a_different_part_differ(one: Any, other: Any) -> None:
    assert parts_of(one) != parts_of(other)
