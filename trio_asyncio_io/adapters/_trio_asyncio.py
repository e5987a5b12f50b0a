"""The import of trio-asyncio, confined so that asyncio outside of its loops does not change."""

# ruff: noqa: SLF001 - it has no public way to confine the effects of its import on asyncio

from __future__ import annotations

import asyncio
import sys
import warnings
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import trio

__all__ = ["check_installed", "trio_asyncio"]


def check_installed() -> None:
    """Check that trio-asyncio is installed, without importing it.

    Raises:
        ImportError: It is not. The message names the extra to install.
    """
    if find_spec("trio_asyncio") is None:
        raise ImportError("from_asyncio needs trio-asyncio: pip install 'trio-asyncio-io[asyncio]'")


def trio_asyncio() -> Any:
    """The package trio-asyncio, imported at the first call.

    Its import replaces asyncio's event loop policy in the whole process: afterwards `asyncio.run` and `new_event_loop`
    create loops of trio-asyncio in all threads. This function restores asyncio's own functions and policy for all code
    outside of a trio-asyncio loop. If the package has been imported already, it changes nothing.

    Raises:
        ImportError: The installed version does not support this version of Python.
    """
    if "trio_asyncio" in sys.modules:
        return import_module("trio_asyncio")
    try:
        with warnings.catch_warnings():  # it uses names that are deprecated since Python 3.12
            warnings.simplefilter("ignore", DeprecationWarning)
            policy = asyncio.get_event_loop_policy()  # type: ignore[deprecated] # trio-asyncio replaces it
            package = import_module("trio_asyncio")
    except AttributeError as error:  # it derives classes from some that Python 3.14 has removed
        raise ImportError(
            f"from_asyncio needs a trio-asyncio that supports Python {sys.version_info[0]}.{sys.version_info[1]}, and "
            f"version {version('trio-asyncio')} does not ({error}): install a newer trio-asyncio or an older Python"
        ) from error
    _confine(import_module("trio_asyncio._loop"), policy)
    return package


class _PolicyOutside:
    """The event loop policy for code outside of a trio-asyncio loop, as set by `asyncio.set_event_loop_policy`."""

    def __init__(self, policy: asyncio.AbstractEventLoopPolicy) -> None:
        self._policy = policy

    @property
    def policy(self) -> asyncio.AbstractEventLoopPolicy:
        return self._policy

    @policy.setter
    def policy(self, policy: asyncio.AbstractEventLoopPolicy | None) -> None:
        self._policy = asyncio.DefaultEventLoopPolicy() if policy is None else policy


def _confine(module: Any, policy: asyncio.AbstractEventLoopPolicy) -> None:
    """Confine the patches of `trio_asyncio._loop`, which looks up these names whenever asyncio calls it."""
    running_loop, asyncio_running_loop = module._new_run_get, module._orig_run_get
    in_trio_context = module._in_trio_context_other_than_sync_loop
    outside = _PolicyOutside(policy)

    def any_running_loop() -> Any:
        return running_loop() or asyncio_running_loop()  # the second is for `asyncio.run` in a Trio task

    def has_loop() -> bool:
        return trio.lowlevel.in_trio_task() and running_loop() is not None

    module._faked_policy = outside
    module._in_trio_context = has_loop
    module._in_trio_context_other_than_sync_loop = lambda: has_loop() and in_trio_context()
    module._trio_policy.get_event_loop = lambda: running_loop() if has_loop() else outside.policy.get_event_loop()
    module._new_run_get = any_running_loop
    for namespace in (asyncio, asyncio.events):
        namespace._get_running_loop = any_running_loop  # type: ignore[attr-defined]
