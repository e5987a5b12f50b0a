"""Text of exceptions."""

from __future__ import annotations

from udfs._tracebacks import as_text, message_of


class SilentError(Exception):
    def __str__(self) -> str:
        return 7  # type: ignore[return-value] # noqa: PLE0307 - raises a TypeError


def test_as_text_escapes_lone_surrogates_only() -> None:
    assert as_text("Zürich ✈ 🛩") == "Zürich ✈ 🛩"
    assert as_text("caf\udce9") == r"caf\udce9"


def test_a_message_above_2000_characters_is_cut_and_ends_with_its_length() -> None:
    assert message_of(ValueError("é" * 2_000)) == "é" * 2_000
    assert message_of(ValueError("é" * 2_001)) == "é" * 2_000 + "… (2,001 characters)"


def test_an_exception_whose_str_raises_has_a_message() -> None:
    assert message_of(SilentError()) == "<str() of the exception raised TypeError>"
