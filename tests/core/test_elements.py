"""Records and watermarks."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest

from trio_asyncio_io import StreamRecord, Watermark


@pytest.mark.parametrize("element", [StreamRecord("a", 7), StreamRecord("a"), Watermark(7)])
def test_an_unpickled_element_equals_the_original(element: object) -> None:
    assert pickle.loads(pickle.dumps(element)) == element


@pytest.mark.parametrize("element", [StreamRecord("a", 7), Watermark(7)])
def test_elements_are_immutable(element: object) -> None:
    with pytest.raises(FrozenInstanceError):
        element.timestamp = 8  # type: ignore[attr-defined]
