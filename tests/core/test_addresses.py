"""Public classes and functions are pickled by the name of the module that exports them."""

from __future__ import annotations

import pickle
import pickletools
from importlib import import_module

import pytest

from trio_asyncio_io import DeadLetter, Snapshot, SnapshotElement, StreamRecord

PUBLIC = ["trio_asyncio_io", "trio_asyncio_io.adapters", "trio_asyncio_io.checkpoints", "trio_asyncio_io.policies"]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_belongs_to_a_public_module(name: str) -> None:
    module = import_module(name)
    owners = {each: getattr(getattr(module, each), "__module__", name) for each in module.__all__}
    private = {each: owner for each, owner in owners.items() if "._" in owner}
    assert private == {}


@pytest.mark.parametrize(
    "value",
    [
        Snapshot((SnapshotElement(0, StreamRecord("Oslo", 1.0), ["sun"]),)),
        DeadLetter(
            StreamRecord("Oslo", 1.0), ValueError(lambda: None), attempts=1, seconds=0.5
        ),  # becomes a `LostError`
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_pickle_contains_no_private_module_name(value: object) -> None:
    opcodes = pickletools.genops(pickle.dumps(value))
    assert not [argument for _, argument, _ in opcodes if isinstance(argument, str) and "._" in argument]
