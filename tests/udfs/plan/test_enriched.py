"""Arguments of the DataFrame operators. The queries themselves are tested in tests/real/spark."""

from __future__ import annotations

from typing import Any

import pytest

from udfs._plan.enriched import _check_flatten, _names


@pytest.mark.parametrize("inputs", ["origin", [], [1], ["origin", None], 5], ids=str)
def test_inputs_must_be_a_list_of_names(inputs: Any) -> None:
    with pytest.raises(TypeError, match="inputs must be a list of one or more names of columns, got"):
        _names("inputs", inputs)


@pytest.mark.parametrize("flatten", ["left", None, 1], ids=str)
def test_flatten_must_be_a_bool_or_outer(flatten: Any) -> None:
    with pytest.raises(ValueError, match=r'flatten must be True, False or "outer", got '):
        _check_flatten(flatten)


def test_inputs_may_be_any_sequence_of_names() -> None:
    assert _names("inputs", ("a", "b")) == ["a", "b"]
