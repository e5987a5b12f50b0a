"""HostCapacity: the gate of a host, which finds how many requests it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from trio_asyncio_io.gates import Auto, Outcome

from ._outcome import AttemptError

_UNAVAILABLE: Final = 503


class HostCapacity(Auto):
    """An `Auto` that takes only the statuses 429 and 503 for refusals.

    With many hosts, some are always down, and some URLs always fail. That concerns their rows, and must neither hold
    back others for minutes nor end the task.
    """

    @classmethod
    def of(cls, auto: Auto) -> HostCapacity:
        """The gate with the arguments of this one."""
        return cls(**auto.configuration(), classify=auto.classify, name=auto.name)

    @property
    def label(self) -> str:
        """That of an `Auto`, which the user has chosen."""
        return "Auto" if self.name is None else f"Auto {self.name!r}"

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """Count a timeout, a connection error and other statuses as the fault of the row."""
        if self.classify is None and outcome.kind == "overload" and not _is_refusal(outcome.error):
            outcome = replace(outcome, kind="error")
        super().ended(now, seconds, outcome, weight)

    def __reduce__(self) -> tuple[Callable[..., Auto], tuple[()]]:
        return partial(HostCapacity, **self.configuration(), classify=self.classify, name=self.name), ()


def _is_refusal(error: Exception | None) -> bool:
    response = error.response if isinstance(error, AttemptError) else None
    return response is not None and response.status == _UNAVAILABLE
