"""The context variable `from_cache`."""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["from_cache"]

from_cache: ContextVar[bool] = ContextVar("trio_asyncio_io.policies.from_cache", default=False)
"""Whether `cached` or `persistent` answered the call in this context. Set it to False before the call, and read it
after. A call that several elements share runs in a context of its own, so a hit inside it is not visible here."""
