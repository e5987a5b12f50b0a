"""Answers from a cache: the context variable `from_cache`, and the report to the operator."""

from __future__ import annotations

from contextvars import ContextVar

from .._calls import answer_from_cache

__all__ = ["from_cache", "hit"]

from_cache: ContextVar[bool] = ContextVar("trio_asyncio_io.policies.from_cache", default=False)
"""Whether `cached` or `persistent` answered the call in this context. Set it to False before the call, and read it
after. A call that several elements share runs in a context of its own, so a hit inside it is not visible here."""


def hit() -> None:
    """The call in this context is answered from a cache."""
    from_cache.set(True)
    answer_from_cache()
