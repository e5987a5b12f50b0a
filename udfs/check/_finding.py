"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "State"]

State = Literal["ok", "fault", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        state: "skipped" means that the check needs another one, which found a fault.
        text: What was found; of a fault, what is wrong.
        remedy: What to do about a fault, as an imperative.
    """

    state: State
    text: str
    remedy: str = ""
