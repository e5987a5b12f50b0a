"""The provenance: whether an answer was made, or was kept."""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["from_cache"]

from_cache: ContextVar[bool] = ContextVar("trio_asyncio_io.policies.from_cache", default=False)
"""Whether the call in this context was answered by `cached` or `persistent`: set it to False before the call and look
at it after. A call that several elements share has a context of its own, and what it finds in a cache is not told."""
