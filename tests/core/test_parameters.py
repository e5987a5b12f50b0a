"""Type parameters that may be left out, also where Python evaluates the subscript."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from trio_asyncio_io import Results, Snapshot, SnapshotElement


@pytest.mark.parametrize("kind", [Results, Snapshot, SnapshotElement])
def test_a_parameter_that_is_left_out_is_any(kind: Any) -> None:
    assert get_args(kind[int]) == (int, Any)
    assert get_args(kind[int, str]) == (int, str)
    with pytest.raises(TypeError):
        kind[int, str, bytes]
