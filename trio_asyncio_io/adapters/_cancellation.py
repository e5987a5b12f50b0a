"""Cancellation by asyncio, as an ordinary error of the call."""

from __future__ import annotations

from .._core.describe import describe

__all__ = ["cancelled_by_asyncio"]


def cancelled_by_asyncio(function: object) -> RuntimeError:
    """The error to raise from an `asyncio.CancelledError`, which is not an `Exception` and would end the operator."""
    return RuntimeError(f"{describe(function)} was cancelled inside asyncio, not by the operator")
