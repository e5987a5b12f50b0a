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


def test_the_own_text_of_a_function_takes_precedence() -> None:
    @share_descriptions(Settings)
    def write(size: int, tags: list[str]) -> None:
        """Write.

        Args:
            tags: Other names.
        """

    assert "    size: Rows" in (write.__doc__ or "")
    assert "    tags: Other names." in (write.__doc__ or "")


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
