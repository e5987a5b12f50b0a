"""keywords: signatures and docstrings that list what `**options` takes."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TypedDict, Unpack

import pytest

from trio_asyncio_io import AsyncWaitOperator, keyed_wait, ordered_wait, unordered_wait
from trio_asyncio_io._values.public import list_keywords, share_descriptions


class Arguments(TypedDict, total=False):
    size: int
    tags: list[str]


@dataclass
class Settings:
    """Settings.

    Args:
        size: Rows, at least 1.
            The rest of the text.
        tags: Their names.
        other: Not an argument.
    """

    size: int = 3
    tags: list[str] | None = None
    other: bool = True


@list_keywords(Arguments, Settings)
def read(path: str, *, limit: int = 9, **options: Unpack[Arguments]) -> str:
    """Read.

    Args:
        path: A file.

    Returns:
        Its text.
    """
    return f"{path} {limit} {options}"


@list_keywords(Arguments, read)
def scan(*, where: str, **options: Unpack[Arguments]) -> str:
    """Scan.

    Args:
        The same as for `read`, and:
        where: A place.
    """
    return f"{where} {options}"


def test_keyword_arguments_are_in_the_signature_with_their_types_and_defaults() -> None:
    assert str(inspect.signature(read)) == (
        "(path: 'str', *, limit: 'int' = 9, size: 'int' = 3, tags: 'list[str]' = None) -> 'str'"
    )


def test_keyword_arguments_are_in_the_docstring_in_the_order_of_the_signature() -> None:
    assert inspect.getdoc(read) == inspect.cleandoc("""
        Read.

        Args:
            path: A file.
            size: Rows, at least 1.
                The rest of the text.
            tags: Their names.

        Returns:
            Its text.
        """)


def test_a_function_takes_texts_and_defaults_from_another_one() -> None:
    assert str(inspect.signature(scan)).startswith("(*, where: 'str', size: 'int' = 3, tags: ")
    assert inspect.getdoc(scan) == inspect.cleandoc("""
        Scan.

        Args:
            where: A place.
            size: Rows, at least 1.
                The rest of the text.
            tags: Their names.
        """)


def test_the_own_text_of_a_function_takes_precedence() -> None:
    @share_descriptions(Settings)
    def write(size: int, tags: list[str]) -> None:
        """Write.

        Args:
            tags: Other names.
        """

    assert "    size: Rows" in (write.__doc__ or "")
    assert "    tags: Other names." in (write.__doc__ or "")


def test_a_class_shows_the_arguments_of_its_constructor() -> None:
    @list_keywords(Arguments, Settings)
    class Reader:
        """Reads.

        Args:
            path: A file.
        """

        def __init__(self, path: str, **options: Unpack[Arguments]) -> None:
            self.options = options

    assert str(inspect.signature(Reader)) == "(path: 'str', *, size: 'int' = 3, tags: 'list[str]' = None) -> 'None'"
    assert "    size: Rows, at least 1." in (Reader.__doc__ or "")


def test_the_typed_dict_may_describe_the_keyword_arguments() -> None:
    class Described(TypedDict, total=False):
        """Described.

        Args:
            size: Bytes, at least 1.
        """

        size: int

    @list_keywords(Described, Described, Settings)
    def read_bytes(**options: Unpack[Described]) -> None:
        """Read.

        Args:
            The arguments of `Described`.
        """

    assert "    size: Bytes, at least 1." in (read_bytes.__doc__ or "")
    assert inspect.signature(read_bytes).parameters["size"].default == 3


def test_a_function_without_a_docstring_keeps_none() -> None:
    @list_keywords(Arguments, Settings)
    def bare(**options: Unpack[Arguments]) -> None:
        del options

    assert bare.__doc__ is None
    assert "size" in inspect.signature(bare).parameters


@pytest.mark.parametrize("operator", [ordered_wait, unordered_wait, keyed_wait, AsyncWaitOperator])
def test_help_for_an_operator_shows_every_option(operator: object) -> None:
    text = inspect.getdoc(operator) or ""
    for name in inspect.signature(operator).parameters:  # type: ignore[arg-type]
        assert f"\n    {name}: " in text
    assert inspect.signature(operator).parameters["capacity"].default == 100  # type: ignore[arg-type]
