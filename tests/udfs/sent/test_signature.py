"""Which numbers of columns a function can be called with."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import pytest

from tests.support import stable_id
from trio_asyncio_io import AsyncFunction
from trio_asyncio_io.adapters import ResultFuture, from_callback, in_thread
from trio_asyncio_io.policies import cached, hedged
from udfs._sent.signature import check_arity, parameter_names, signature_of


async def one(a: int) -> int:
    return a


async def optional(a: int, b: int = 0, *, c: int = 0) -> int:
    return a + b + c


async def any_number(first: int, *rest: int) -> int:
    return first + sum(rest)


async def by_keyword(*, a: int, b: int) -> int:
    return a + b


async def price(shop: int, currency: str, amount: int, language: str = "en") -> str:
    return f"{amount} {currency}"


class Lookup(AsyncFunction[int, int]):
    async def invoke(self, a: int) -> int:
        return a


class Twice:
    """Has the attribute `function`, as a policy has, and other parameters than its value."""

    def __init__(self, function: Any) -> None:
        self.function = function

    async def invoke(self, *given: int) -> list[int]:
        return [await self.function(each) for each in given]


def with_client(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def called(a: int) -> Any:
        return await function("client", a)

    return called


@with_client
async def decorated(client: str, a: int) -> str:
    return client * a


def with_callback(a: int, result_future: ResultFuture[int]) -> None:
    result_future.complete(a)


@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        (one, {1}),
        (Lookup(), {1}),
        (optional, {1, 2}),
        (partial(optional, 1), {1}),
        (any_number, {1, 2, 3}),
        (hedged(cached(optional), after=1.0), {1, 2}),
        (in_thread(max), {1, 2, 3}),
        (from_callback(with_callback), {1, 2, 3}),
        (Twice(one), {1, 2, 3}),
        (decorated, {1}),
        (by_keyword, set()),
        (partial(price, language="de"), {3}),
        (partial(price, 1, currency="EUR"), set()),
        (None, {1, 2, 3}),
    ],
    ids=stable_id,
)
def test_a_function_is_called_with_as_many_columns_as_it_takes(function: Any, numbers: set[int]) -> None:
    def is_accepted(number: int) -> bool:
        try:
            check_arity("it", pickle.loads(pickle.dumps(signature_of(function))), "abc"[:number])
        except TypeError:
            return False
        return True

    assert {number for number in range(4) if is_accepted(number)} == numbers


@pytest.mark.parametrize(
    ("function", "columns", "message"),
    [
        (one, "ab", "it takes (a), got 2 columns (a, b): give one column for each parameter"),
        (in_thread(lambda a, b: a), "a", "it takes (a, b), got 1 column (a): give one column for each parameter"),
        (optional, "abc", "it takes (a, b=..., *, c=...), got 3 columns (a, b, c): give one column for each parameter"),
        (
            by_keyword,
            "ab",
            (
                "it takes a, b by keyword, and columns are passed by position: remove the * from its parameters; a "
                "partial must bind by position what is in front of a, b"
            ),
        ),
        (one, "", "it needs at least one column: call it with columns or names of columns"),
        (None, "", "it needs at least one column: call it with columns or names of columns"),
    ],
    ids=stable_id,
)
def test_another_number_of_columns_is_refused_with_advice(function: Any, columns: str, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        check_arity("it", signature_of(function), columns)
    assert str(caught.value) == message


async def nothing() -> None: ...


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (optional, ["a", "b"]),
        (Lookup(), ["a"]),
        (partial(optional, 1), ["b"]),
        (partial(optional, b=5), ["a"]),
        (cached(partial(optional, b=5)), ["a"]),
        (cached(optional), ["a", "b"]),
    ],
    ids=stable_id,
)
def test_the_input_columns_are_inferred_from_the_parameters(function: Any, names: list[str]) -> None:
    assert parameter_names(function) == names


@pytest.mark.parametrize("function", [any_number, nothing, in_thread(max), partial(optional, 1, b=5)], ids=stable_id)
def test_inputs_is_required_if_the_columns_cannot_be_inferred(function: Any) -> None:
    with pytest.raises(
        TypeError, match=r"cannot infer the input columns from the parameters of .*: give inputs=\[\.\.\.\]"
    ):
        parameter_names(function)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="older versions evaluate annotations at the definition")
def test_annotations_may_contain_names_that_only_type_checkers_know() -> None:
    namespace: dict[str, Any] = {}
    exec(compile("async def function(origin: OnlyForCheckers): ...", "module.py", "exec", dont_inherit=True), namespace)
    assert parameter_names(namespace["function"]) == ["origin"]
