"""Frames: a traceback starts in the user's code."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from udfs._tracebacks import starting_in_user_code


def caller(module: str) -> Callable[..., Any]:
    """A function `call`, which calls its argument, of a module with this name."""
    made = ModuleType(module)
    exec("def call(function): return function()", vars(made))
    function: Callable[..., Any] = made.call
    return function


def helper() -> None:
    raise LookupError("not here")


def frames_left(function: Callable[[], object]) -> list[str]:
    """The names of the functions in the traceback after the cut."""
    with pytest.raises((LookupError, ValueError)) as caught:
        function()
    error = caught.value
    assert error.__traceback__ is not None
    cut = starting_in_user_code(error.with_traceback(error.__traceback__.tb_next))  # without the frame of this function
    names = []
    traceback = cut.__traceback__
    while traceback is not None:
        names.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    return names


@pytest.mark.parametrize(
    "module",
    ["udfs", "udfs._spark_thread.bridge", "trio_asyncio_io._core.queue", "trio._core._run", "outcome", "contextlib"],
)
def test_leading_frames_of_the_project_and_its_libraries_are_cut(module: str) -> None:
    call = caller(module)
    assert frames_left(partial(call, partial(call, helper))) == ["helper"]


@pytest.mark.parametrize("module", ["__main__", "weather", "udfs_of_mine", "trio_of_mine"])
def test_the_first_frame_of_another_module_is_kept(module: str) -> None:
    ours, theirs = caller("udfs._spark_thread.bridge"), caller(module)
    assert frames_left(partial(ours, partial(theirs, helper))) == ["call", "helper"]


def test_frames_of_the_project_below_user_code_are_removed() -> None:
    user, client = caller("weather"), caller("udfs.http._client")
    assert frames_left(partial(user, partial(client, helper))) == ["call", "helper"]


def test_a_traceback_without_user_frames_is_kept_whole() -> None:
    ours = caller("udfs._spark_thread.bridge")
    assert frames_left(partial(ours, partial(json.loads, "{")))[:2] == ["call", "loads"]


def test_an_exception_that_was_never_raised_has_no_traceback() -> None:
    assert starting_in_user_code(OSError("never raised")).__traceback__ is None
