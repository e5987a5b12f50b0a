"""The error for a missing package of an extra."""

from __future__ import annotations

from importlib import import_module

import pytest

from udfs._extras import needs_extra


def test_a_missing_package_is_named_with_the_extra_that_installs_it() -> None:
    expected = r"^udfs\.weather needs absent_package\.part: in a clone, pip install '\.\[spark\]'$"
    with pytest.raises(ModuleNotFoundError, match=expected) as caught, needs_extra("udfs.weather", "spark"):
        raise ModuleNotFoundError("No module", name="absent_package.part")
    assert caught.value.name == "absent_package.part"


@pytest.mark.parametrize("module", ["udfs.gone", "trio_asyncio_io.gone"])
def test_a_missing_module_of_these_packages_is_raised_as_it_is(module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="No module named"), needs_extra("udfs.weather", "spark"):
        import_module(module)


def test_other_errors_are_raised_as_they_are() -> None:
    with pytest.raises(ImportError, match=r"^cannot import name$"), needs_extra("udfs.weather", "spark"):
        raise ImportError("cannot import name")
