"""What the tests of observation share: each mode through one door."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from trio_asyncio_io import keyed_wait, ordered_wait, unordered_wait

DOORS = {
    "ordered": ordered_wait,
    "unordered": unordered_wait,
    "keyed": partial(keyed_wait, key=repr),
}


@pytest.fixture(params=list(DOORS))
def wait(request: pytest.FixtureRequest) -> Any:
    """The door of each mode in turn. In keyed mode equal values have one key."""
    return DOORS[request.param]
