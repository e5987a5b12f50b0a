"""A process's side of a limit: when to send a request, and when a call may start. See `rates` and `budgets`."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

OPEN_SECONDS = 5.0  # for a connection to open
GRANT_SECONDS = 1.0  # seconds for a grant to arrive
FIRST_RETRY_SECONDS = 0.03  # seconds until the next request after the first failure
RETRY_SECONDS = 0.25  # seconds until the next request after later failures, and at most after a grant without tokens
AWAY_SECONDS = 1.5  # seconds without a grant after which the source counts as away: more than one lost message
POLL_SECONDS = 0.01  # seconds until a waiting call checks for the grant


@dataclass(frozen=True, slots=True)
class Outage:
    """The source does not answer.

    Args:
        since: The local instant of the first request that failed.
        latest: The local instant of the latest failure.
        reason: Why the latest request failed.
    """

    since: float
    latest: float
    reason: str


class Lease:
    """Decides when the calls of one process may start. Plain data: it neither waits nor sends anything.

    While no grant arrives, calls wait, and requests are repeated. All instants are seconds on the process's clock.

    Attributes:
        idle_seconds: After this many seconds without a request, `heartbeat` has the next one.
        outage: Whether requests fail, since when, and why. None: the latest one was granted, or none was sent lately.
        is_requested: Whether a request is on its way.
    """

    idle_seconds: ClassVar[float]

    def __init__(self) -> None:
        self.outage: Outage | None = None
        self.is_requested = False
        self._next_request = -inf

    def corrected(self, weight: float, actual: float) -> None:
        """A call that runs costs `actual`, and not `weight`."""

    def ended(self, weight: float) -> None:
        """A call has ended and has cost this much."""

    def spent_by_all(self) -> float:
        """What all processes have spent and leased, as far as this one knows, for messages. 0.0 for a rate."""
        return 0.0

    @property
    def must_return(self) -> bool:
        """Whether no call is running and something is left to return."""
        return False

    def heartbeat(self, now: float) -> Any:  # noqa: ARG002
        """The request to send when no call waits. None: the connection can be closed."""
        return None

    def return_unused(self, now: float) -> Any:  # noqa: ARG002
        """The request that returns what is not used. None: there is nothing to return, or a request is on its way."""
        return None

    def failed(self, sent: float, now: float, reason: str) -> None:
        """No grant has arrived for the request that was sent at the instant `sent`.

        Args:
            sent: The instant of the request.
            now: The instant at which it counts as failed.
            reason: Why, for messages.
        """
        self.is_requested = False
        self._next_request = now + (RETRY_SECONDS if self.outage else FIRST_RETRY_SECONDS)
        self.outage = Outage(self.outage.since if self.outage else sent, now, reason)

    def is_away(self, now: float) -> bool:
        """Whether the source has been away for more than a moment. Nothing that it granted before is left by then."""
        return self.outage is not None and now >= self.outage.since + AWAY_SECONDS
