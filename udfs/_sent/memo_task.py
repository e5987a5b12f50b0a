"""Memo task: how the tasks of a query use a memo."""

from __future__ import annotations

from .settings import MemoTask

__all__ = ["MemoTask"]
