"""Arguments of the DataFrame operators. The queries themselves are tested in tests/real/spark."""

from __future__ import annotations

from typing import Any

import pytest

from udfs._plan.enriched import _check_flatten


@pytest.mark.parametrize("flatten", ["left", None, 1], ids=str)
def test_flatten_must_be_a_bool_or_outer(flatten: Any) -> None:
    with pytest.raises(ValueError, match=r'flatten must be True, False or "outer", got '):
        _check_flatten(flatten)
