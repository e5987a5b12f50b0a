"""Detection of a new Trio run."""

from __future__ import annotations

import trio

__all__ = ["RunChange"]


class RunChange:
    """Detects that another Trio run has begun.

    Each run has its own clock with an arbitrary start, so instants of two runs cannot be compared. Tasks, locks and
    events of a run do not survive it.
    """

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token: trio.lowlevel.TrioToken | None = None

    def has_happened(self) -> bool:
        """Whether this is another run than at the last call. True at the first call."""
        token = trio.lowlevel.current_trio_token()
        if token is self._token:
            return False
        self._token = token
        return True
