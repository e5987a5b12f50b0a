"""Arguments of the DataFrame operators. The operators themselves are tested in tests/real/spark."""

from __future__ import annotations

from typing import Any

import pytest

from udfs._dataframe import _names


@pytest.mark.parametrize("inputs", ["origin", [], [1], ["origin", None], 5], ids=str)
def test_inputs_must_be_a_list_of_names(inputs: Any) -> None:
    with pytest.raises(TypeError, match="inputs must be a list of one or more names of columns, got"):
        _names("inputs", inputs)


def test_inputs_may_be_any_sequence_of_names() -> None:
    assert _names("inputs", ("a", "b")) == ["a", "b"]
