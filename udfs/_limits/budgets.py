"""One budget for all processes of a cluster: its source, in memory or in a file, and a process's lease.

A process spends from a lease, a part of the budget that nobody else can spend. Each request replaces the lease: the
source enlarges it, if enough is left, or takes back what the process does not need. At every moment

    what was spent <= the sum of all leases <= the budget

as long as no call costs more than its estimate. The lease of a process that is killed is never returned. So its calls
in flight count as spent, and with them at most the thousandth of the budget that it had leased ahead.

A request carries sums and a number instead of changes. So a message that is lost or late changes nothing: the source
ignores old requests, and a process that waits for an answer spends no more than the `floor` of its request.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar

from .lease import POLL_SECONDS, RETRY_SECONDS, Lease

HEARTBEAT_SECONDS = 1.0  # seconds between the requests of a process that holds a lease
DEAD_SECONDS = 10.0  # seconds without a request after which a process counts as dead
FORGOTTEN_SECONDS = 3600.0  # seconds without a request after which the source forgets a process, but not its lease
SHARE = 1e-3  # of the budget, which a process leases ahead
ROUNDING = 1e-9  # of the budget, for sums of floats

LOCKED_SECONDS = 30.0  # for another driver with the same file
CREATE = "CREATE TABLE IF NOT EXISTS budgets (name TEXT PRIMARY KEY, leased REAL NOT NULL) WITHOUT ROWID"


@dataclass(frozen=True, slots=True)
class BudgetGrant:
    """The answer to a request.

    Args:
        lease: What the process may have spent and reserved from now on.
        left: What nobody has leased, at most the budget; negative if calls cost more than their estimates.
        held: What other processes have leased and not spent. They may return it.
    """

    lease: float
    left: float
    held: float


@dataclass(frozen=True, slots=True)
class BudgetRequest:
    """A request for a lease. All sums belong to one process.

    Args:
        name: The name of the budget.
        amount: The budget.
        holder: Identifies the process.
        number: The number of the request; each request of a process has a higher one.
        spent: What its calls that have ended cost.
        floor: The lease that it keeps in any case, at least what is spent and reserved.
        need: The smallest lease with which the waiting call can start.
        want: The lease to grant if enough is left.
    """

    answer: ClassVar = BudgetGrant

    name: str
    amount: float
    holder: str
    number: int
    spent: float
    floor: float
    need: float
    want: float


@dataclass(slots=True)
class Holding:
    """The state of a process at the source: its lease, and its latest request."""

    lease: float = 0.0
    spent: float = 0.0
    number: int = 0
    seen: float = -inf


@dataclass(slots=True)
class BudgetSource:
    """The source of one budget.

    Args:
        leased: The sum of all leases. It is all that must survive a loss of memory.
        holdings: By process.
    """

    leased: float = 0.0
    holdings: dict[str, Holding] = field(default_factory=dict)

    def grant(self, now: float, request: BudgetRequest) -> BudgetGrant:
        """Replace the lease of a process."""
        holding = self.holdings.setdefault(request.holder, Holding())
        if request.number > holding.number:
            others = self.leased - holding.lease
            available = request.amount * (1 + ROUNDING) - others
            lease = min(request.want, available) if request.need <= available else request.floor
            holding.lease, holding.spent = max(lease, request.floor), request.spent
            holding.number, holding.seen = request.number, now
            self.leased = others + holding.lease
        self._forget(now)
        return BudgetGrant(holding.lease, request.amount - self.leased, _held(self.holdings, request.holder, now))

    def _forget(self, now: float) -> None:
        for holder in [each for each, holding in self.holdings.items() if holding.seen < now - FORGOTTEN_SECONDS]:
            del self.holdings[holder]


def _held(holdings: Mapping[str, Holding], holder: str, now: float) -> float:
    others = (each for name, each in holdings.items() if name != holder and each.seen >= now - DEAD_SECONDS)
    return sum(max(0.0, each.lease - each.spent) for each in others)


def check_file(path: str) -> None:
    """Create the file, if there is none.

    Raises:
        OSError: It cannot be used.
    """
    try:
        with _locked(path) as connection:  # fails if the file can only be read
            connection.execute(CREATE)
    except sqlite3.Error as error:
        raise OSError(
            f"path={path!r} cannot be used for budgets ({error}): "
            "give the path of a file on a disk, in a folder that exists"
        ) from error


def grant_from_file(source: BudgetSource, path: str, now: float, request: BudgetRequest) -> BudgetGrant:
    """Grant what the file still has, and write it to the file first. Several drivers may use one file.

    Args:
        source: The leases of the budget in this driver.
        path: The file.
        now: The instant of the grant, on a clock of this driver.
        request: The request of a process.

    Raises:
        sqlite3.Error: The file cannot be read or written. Nothing was granted.
    """
    before = copy(source.holdings.get(request.holder, Holding()))
    try:
        with _locked(path) as connection:
            row = connection.execute("SELECT leased FROM budgets WHERE name = ?", (request.name,)).fetchone()
            source.leased = row[0] if row else 0.0
            grant = source.grant(now, request)
            connection.execute("INSERT OR REPLACE INTO budgets VALUES (?, ?)", (request.name, source.leased))
    except sqlite3.Error:
        source.holdings[request.holder] = before
        raise
    return grant


@contextmanager
def _locked(path: str) -> Iterator[sqlite3.Connection]:
    """A connection that has the file to itself, and commits at the end of the block."""
    with closing(sqlite3.connect(path, timeout=LOCKED_SECONDS, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")


class BudgetLease(Lease):
    """A lease of a part of a budget.

    Args:
        name: The name of the budget.
        amount: The budget.
        process: A text that no other lease has.
    """

    idle_seconds = HEARTBEAT_SECONDS

    def __init__(self, name: str, amount: float, process: str) -> None:
        super().__init__()
        self._name, self._amount, self._process = name, amount, process
        self._lives = self._number = 0
        self._spent = self._reserved = 0.0
        self._running = 0
        self._granted = 0.0
        self._reported = 0.0  # the `spent` of the latest request
        self._left = self._held = inf  # unknown
        self._is_used = False  # since the latest request
        self._next_heartbeat = -inf

    @property
    def _used(self) -> float:
        return self._spent + self._reserved

    @property
    def _slack(self) -> float:
        """The rounding error that a call may use: half of the source's, which leases no more than that."""
        return ROUNDING * self._amount / 2

    @property
    def is_held(self) -> bool:
        """Whether the source still counts a part of this lease as unspent."""
        return self._granted > self._reported or self._used > self._reported

    @property
    def must_return(self) -> bool:
        """See `Lease`."""
        return self.is_held and not self._running

    def delay(self, now: float, weight: float) -> float | None:
        """The seconds until a call of this weight may start or must be checked again. None: it is beyond the budget."""
        if not weight or self._used + weight <= self._granted + self._slack:
            return 0.0
        if self.is_requested:  # so it is unknown what this process may have
            return POLL_SECONDS
        if weight > self._left + self._held + max(0.0, self._granted - self._spent) + self._slack:
            return None
        return max(POLL_SECONDS, self._next_request - now)

    def request(self, now: float, weight: float = 0.0) -> BudgetRequest | None:
        """The request to send now, if any. `granted` or `failed` must follow.

        Args:
            weight: The weight of the call that is checked now; 0 without one.
        """
        if self.is_requested or now < self._next_request:
            return None
        used, ahead = self._used, SHARE * self._amount
        if weight and used + weight > self._granted + self._slack:
            if self.delay(now, weight) is None:
                return None
            return self._send(now, used, used + weight, used + weight + ahead)
        if self._is_used and self._granted - used < ahead / 2 and self._left > 0:
            floor = max(used, self._granted)
            return self._send(now, floor, floor, used + ahead)
        if self.is_held and now >= self._next_heartbeat:
            return self._send(now, used, used, used + ahead if self._is_used else used)
        return None

    def heartbeat(self, now: float) -> BudgetRequest | None:
        """The request that keeps the lease of calls that run, and returns what was not used."""
        return self.request(now)

    def return_unused(self, now: float) -> BudgetRequest | None:
        """The request that returns what is not reserved, for the end of a task."""
        if self.is_requested or not self.is_held:
            return None
        return self._send(now, self._used, self._used, self._used)

    def _send(self, now: float, floor: float, need: float, want: float) -> BudgetRequest:
        if not self.is_held and not self._running:
            self._begin_again()
            floor, need, want = 0.0, need - floor, want - floor
        self.is_requested, self._is_used = True, False
        self._number += 1
        self._next_heartbeat = now + HEARTBEAT_SECONDS
        self._reported = self._spent
        self._granted = min(self._granted, floor)
        holder = f"{self._process}-{self._lives}"
        return BudgetRequest(self._name, self._amount, holder, self._number, self._spent, floor, need, max(want, floor))

    def _begin_again(self) -> None:
        """Lease as another holder, because the source may forget those that hold nothing."""
        self._lives += 1
        self._number = 0
        self._spent = self._reserved = self._granted = self._reported = 0.0

    def granted(self, grant: BudgetGrant, sent: float, received: float) -> None:  # noqa: ARG002 - as of a rate's lease
        """An answer has arrived for the latest request.

        Args:
            grant: The answer.
            sent, received: The instants of the request and of the answer.
        """
        self.is_requested, self.outage = False, None
        is_larger = grant.lease > self._granted
        self._granted, self._left, self._held = grant.lease, grant.left, grant.held
        self._next_request = received if is_larger else received + RETRY_SECONDS

    def failed(self, sent: float, now: float, reason: str) -> None:
        """No answer has arrived for the latest request."""
        super().failed(sent, now, reason)
        self._reported, self._left = -1.0, inf  # unknown

    def started(self, weight: float) -> None:
        """A call starts. `delay` has returned 0.0 for it."""
        self._is_used = True
        self._running += 1
        self._reserved += weight

    def corrected(self, weight: float, actual: float) -> None:
        """A call that runs costs `actual`, and not `weight`."""
        self._reserved += actual - weight

    def ended(self, weight: float) -> None:
        """A call has ended and has cost this much."""
        self._running -= 1
        self._reserved = max(0.0, self._reserved - weight) if self._running else 0.0
        self._spent += weight

    def spent_by_all(self) -> float:
        """See `Lease`."""
        return self._amount - max(0.0, self._left + self._held)
