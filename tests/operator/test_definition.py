"""Definitions: which callables count as equal."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from trio_asyncio_io._operator.definition import parts_of

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


def with_keyword_default(size: Any) -> Callable[[], Any]:
    def make(*, size: Any = size) -> Any:
        return Client(size)

    return make


def with_inner(url: Any) -> Callable[[], Any]:
    inner = with_url(url)
    return lambda: [inner()]


class Factory:
    def __init__(self, url: Any) -> None:
        self.url = url
        self.itself = self

    def __call__(self) -> Any:
        return Client(self.url)


class Unreadable:
    def __reduce__(self) -> Any:
        raise OSError


LOCK = Lock()


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
    "closure with an object whose class defines no equality": lambda: with_url(Client()),
    "closure with an object that cannot be pickled": lambda: with_url(LOCK),
    "closure with bytes in a tuple": lambda: with_url((b"a", {"b"}, Decimal(1), Path("a"))),
    "closure with a function": lambda: with_inner((1, "a")),
    "keyword default": lambda: with_keyword_default((1, 2)),
    "object that refers to itself": lambda: Factory({"a": (1,)}),
    "copy by a pickle": lambda: pickle.loads(pickle.dumps(partial(Factory("".join("ab")), ("ab", "ab")))),
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


def test_the_order_of_a_dict_makes_no_difference() -> None:
    assert parts_of(with_url({"a": 1, "b": 2})) == parts_of(with_url({"b": 2, "a": 1}))


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "closure": (with_url("a"), with_url("b")),
    "type": (with_url(1), with_url(True)),
    "tuple": (with_url(("a", 1)), with_url(("a", 2))),
    "list": (with_url(["a"]), with_url(("a",))),
    "dict": (with_url({"token": "a"}), with_url({"token": "b"})),
    "bytes": (with_url(b"a"), with_url(b"b")),
    "set": (with_url({1}), with_url({2})),
    "nothing": (with_url(None), with_url("")),
    "object": (with_url(Client("a")), with_url(Client("b"))),
    "object in a list in a dict": (with_url({"client": [Client("a")]}), with_url({"client": [Client("b")]})),
    "lock": (with_url(Lock()), with_url(Lock())),
    "object whose pickling fails": (with_url(Unreadable()), with_url(Unreadable())),
    "function in a closure": (with_inner("a"), with_inner("b")),
    "keyword default": (with_keyword_default("a"), with_keyword_default("b")),
    "method": (Client("a").connect, Client("b").connect),
    "callable object": (Factory("a"), Factory("b")),
    "dict in a partial": (partial(Client, {"a": 1}), partial(Client, {"a": 2})),
    "function in a partial": (partial(with_url("a")), partial(with_url("b"))),
    "default": (with_default(3), with_default(4)),
    "partial": (partial(Client, "a"), partial(Client, "b")),
    "kind": (Client, partial(Client)),
    "constant": (lambda: Client("a"), lambda: Client("b")),
    "address": (with_url, with_default),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=list(DIFFERENT))
def test_definitions_with_a_different_part_differ(one: Any, other: Any) -> None:
    assert parts_of(one) != parts_of(other)
