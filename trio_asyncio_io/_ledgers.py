"""The ledgers of the running operators, for policies that count what they do for a call."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import trio

from ._core.ledger import Ledger
from ._sharing.scope import nurseries_of_call

__all__ = ["cover", "ledger_of_call"]

# By nursery, not as a context variable, which would cost each element time
_LEDGERS: WeakKeyDictionary[trio.Nursery, Ledger] = WeakKeyDictionary()


def cover(nursery: trio.Nursery, ledger: Ledger) -> None:
    """The tasks of this nursery make the calls of this ledger's operator."""
    _LEDGERS[nursery] = ledger


def ledger_of_call() -> Ledger | None:
    """The ledger of the innermost operator that the present task makes a call for; None: there is none.

    A call that several elements share is made for the operator whose element started it.
    """
    return next((_LEDGERS[nursery] for nursery in nurseries_of_call() if nursery in _LEDGERS), None)
