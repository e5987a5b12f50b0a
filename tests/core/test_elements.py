"""Records and watermarks."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest

from trio_asyncio_io import StreamRecord, Watermark
from trio_asyncio_io._core.elements import value_of, with_value


@pytest.mark.parametrize("element", [StreamRecord("a", 7), StreamRecord("a"), Watermark(7)])
def test_an_unpickled_element_equals_the_original(element: object) -> None:
    assert pickle.loads(pickle.dumps(element)) == element


@pytest.mark.parametrize("element", [StreamRecord("a", 7), Watermark(7)])
def test_elements_are_immutable(element: object) -> None:
    with pytest.raises(FrozenInstanceError):
        element.timestamp = 8  # type: ignore[attr-defined]


def test_the_value_of_a_record_is_unwrapped_and_a_bare_value_is_not() -> None:
    assert value_of(StreamRecord("a", 7)) == "a"
    assert value_of("a") == "a"
    assert value_of(None) is None


def test_the_result_of_a_record_is_a_record() -> None:
    assert with_value(StreamRecord("a", 7), "A") == StreamRecord("A", 7)
    assert with_value("a", "A") == "A"
