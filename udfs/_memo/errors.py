"""MemoError: the error of a memo that cannot be used."""

from __future__ import annotations

__all__ = ["MemoError"]


class MemoError(RuntimeError):
    """A memo cannot be used: one of its files is unreadable, or it belongs to another function or schema."""

    __module__ = "udfs"
