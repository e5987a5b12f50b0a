"""The browser of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.browser._chromium import Chromium, chromium, program


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    executable = program()
    assert executable is not None
    with chromium(executable, tmp_path_factory.mktemp("profile")) as page:
        yield page
