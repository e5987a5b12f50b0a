"""Elements, as plain data."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest

from trio_asyncio_io import StreamRecord, Watermark
from trio_asyncio_io._core.elements import value_of, with_value


@pytest.mark.parametrize("element", [StreamRecord("a", 7), StreamRecord("a"), Watermark(7)])
def test_an_element_pickles_and_is_equal_to_its_copy(element: object) -> None:
    assert pickle.loads(pickle.dumps(element)) == element


@pytest.mark.parametrize("element", [StreamRecord("a", 7), Watermark(7)])
def test_an_element_cannot_be_changed(element: object) -> None:
    with pytest.raises(FrozenInstanceError):
        element.timestamp = 8  # type: ignore[attr-defined]


def test_the_function_is_called_with_the_value_of_a_record_and_with_a_bare_value_as_it_is() -> None:
    assert value_of(StreamRecord("a", 7)) == "a"
    assert value_of("a") == "a"
    assert value_of(None) is None


def test_a_result_comes_out_as_its_element_went_in() -> None:
    assert with_value(StreamRecord("a", 7), "A") == StreamRecord("A", 7)
    assert with_value("a", "A") == "A"
