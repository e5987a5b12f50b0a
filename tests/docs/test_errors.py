"""The index of errors has every message, with what to do."""

from __future__ import annotations

import ast

import pytest

from tests.docs.script import script

errors = script("errors")


@pytest.fixture(scope="module")
def messages() -> set[str]:
    return {text for found in errors.by_area().values() for text in found}


def test_each_message_has_a_remedy(messages: set[str]) -> None:
    """If this fails, add a line to docs/reference/errors.toml, and run `just pages`."""
    remedies = errors.remedies_of_the_page()
    assert [text for text in messages if text not in remedies and not errors.says_what_to_do(text)] == []


def test_each_remedy_is_that_of_a_message(messages: set[str]) -> None:
    """If this fails, change the line in docs/reference/errors.toml as the message was changed."""
    assert errors.remedies_of_the_page().keys() - messages == set()


def test_messages_of_all_forms_are_found() -> None:
    tree = ast.parse(
        'RULE = "take one"\n'
        'raise ValueError(f"count must be 1, got {count}")\n'
        "raise TypeError(RULE)\n"
        "def _problem_of(value):\n"
        '    return "it is " + f"{value}: remove it"\n'
        "raise ValueError(name)\n"
    )
    assert sorted(errors._messages(tree)) == [
        "count must be 1, got …",
        "it is …: remove it",
        "take one",
    ]
