"""How long a service has accepted no call, for gates that wait until it does."""

from __future__ import annotations

from math import inf

from .._values.describe import in_words
from .._values.exceptions import add_note, without_frames
from .gate import Outcome


class Refusals:
    """The refusals of a service since its last success. A gate waits for the next success, for a limited time.

    Args:
        give_up: Seconds without a success after which the gate gives up. `math.inf`: never.

    Attributes:
        error: The exception of the last refusal, without its frames. None: the service has refused no call since.
    """

    def __init__(self, give_up: float) -> None:
        self._give_up = give_up
        self._since = inf
        self.error: Exception | None = None
        self._asks: float | None = None

    def add(self, now: float, outcome: Outcome) -> None:
        """The service has refused a call."""
        self._since = min(self._since, now)
        self._asks = outcome.retry_after
        if outcome.error is not None:
            self.error = without_frames(outcome.error)

    def end(self) -> None:
        """The service has accepted a call."""
        self._since, self.error, self._asks = inf, None, None

    def skip(self, seconds: float) -> None:
        """No call has waited for this long, so nothing is known of that time."""
        self._since += seconds

    def limited(self, delay: float, now: float) -> float:
        """The delay, at most until the gate gives up.

        Raises:
            Exception: That of the last refusal: the gate gives up. From then on, another wait begins.
        """
        error = self.error
        if not delay or error is None:  # there is nothing to fail with
            return delay
        give_up_at = self._since + self._give_up
        if now < give_up_at:
            return min(delay, give_up_at - now)
        add_note(error, self._reason())
        self.end()
        raise error

    def _reason(self) -> str:
        wait = "" if self._asks is None else f", and in its last answer it asks to wait {in_words(self._asks)}"
        return (
            f"the service has accepted no call for {in_words(self._give_up)} (give_up), so the operator stops{wait}. "
            "Check the service and its quota. Start again when it accepts calls, or set give_up to a longer time"
        )
