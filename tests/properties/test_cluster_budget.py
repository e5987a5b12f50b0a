"""A budget of a cluster holds, whichever messages are lost or late, and whatever is killed."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from udfs._limits.budgets import DEAD_SECONDS, HEARTBEAT_SECONDS, BudgetLease, BudgetRequest, BudgetSource

WEIGHTS = st.integers(1, 300).map(lambda cents: cents / 100)
SHARES = st.sampled_from([0.0, 0.1, 0.5, 1.0])
NUMBERS = st.integers(0, 1_000)
NEARLY = 1e-6


class Process:
    """A worker process: its lease, its calls, and its request on the way."""

    def __init__(self, name: str, amount: float) -> None:
        self.lease = BudgetLease("budget", amount, name)
        self.calls: list[float] = []
        self.request: BudgetRequest | None = None
        self.since = 0.0


class ClusterMachine(RuleBasedStateMachine):
    """Processes call a service that counts what it is paid. Messages are lost or late, and anything is killed."""

    @initialize(amount=st.sampled_from([0.0, 5.0, 20.0, 1_000.0]))
    def begin(self, amount: float) -> None:
        self.amount, self.now, self.number = amount, 0.0, 0
        self.source = BudgetSource()
        self.paid = 0.0  # for calls that have ended, or whose process was killed
        self.late: list[BudgetRequest] = []
        self.processes = [self.new_process() for _ in range(3)]

    def new_process(self) -> Process:
        self.number += 1
        return Process(str(self.number), self.amount)

    def one(self, number: int) -> Process:
        return self.processes[number % len(self.processes)]

    def send(self, process: Process, request: BudgetRequest | None) -> None:
        if request is not None:
            process.request, process.since = request, self.now

    @rule(number=NUMBERS, weight=WEIGHTS)
    def call(self, number: int, weight: float) -> None:
        """A call is started, waits or is refused. A request is sent if it is due."""
        process = self.one(number)
        self.send(process, process.lease.request(self.now, weight))
        if process.lease.delay(self.now, weight) == 0.0:
            process.lease.started(weight)
            process.calls.append(weight)

    @precondition(lambda self: any(each.calls for each in self.processes))
    @rule(number=NUMBERS, share=SHARES)
    def end(self, number: int, share: float) -> None:
        """A call ends. It settles less than its estimate, or all of it."""
        process = self.one(number)
        if process.calls:
            weight = process.calls.pop()
            process.lease.corrected(weight, share * weight)
            process.lease.ended(share * weight)
            self.paid += share * weight

    @rule(
        number=NUMBERS,
        seconds=st.sampled_from([0.0, 0.3, HEARTBEAT_SECONDS, DEAD_SECONDS, 10 * DEAD_SECONDS]),
        is_end=st.booleans(),
    )
    def wait(self, number: int, seconds: float, is_end: bool) -> None:
        """Time passes. A process sends a heartbeat, or returns what is unused at the end of a task."""
        self.now += seconds
        process = self.one(number)
        lease = process.lease
        self.send(process, lease.return_unused(self.now) if is_end else lease.request(self.now))

    @rule(number=NUMBERS, fate=st.sampled_from(["arrives", "arrives", "is late", "has no answer"]))
    def transmit(self, number: int, fate: str) -> None:
        """The request of a process arrives, or arrives later, or its answer is lost."""
        process = self.one(number)
        request, process.request = process.request, None
        if request is None:
            return
        grant = None if fate == "is late" else self.source.grant(self.now, request)
        if fate == "arrives":
            assert grant is not None
            process.lease.granted(grant, process.since, self.now)
        else:
            process.lease.failed(process.since, self.now, "lost")
            self.late.append(request)

    @precondition(lambda self: self.late)
    @rule(number=NUMBERS)
    def arrive_late(self, number: int) -> None:
        self.source.grant(self.now, self.late.pop(number % len(self.late)))

    @rule(number=NUMBERS)
    def kill_process(self, number: int) -> None:
        """Its calls were paid."""
        killed = self.one(number)
        self.paid += sum(killed.calls)
        if killed.request is not None:
            self.late.append(killed.request)
        self.processes.remove(killed)
        self.processes.append(self.new_process())

    @rule()
    def kill_driver(self) -> None:
        """All processes end with it. What was leased is in its file."""
        for each in self.processes:
            self.paid += sum(each.calls)
        self.processes = [self.new_process() for _ in range(3)]
        self.late.clear()
        self.source = BudgetSource(self.source.leased)

    @invariant()
    def the_service_is_paid_at_most_the_budget(self) -> None:
        if hasattr(self, "amount"):
            running = sum(sum(each.calls) for each in self.processes)
            assert self.paid + running <= self.source.leased + NEARLY
            assert self.source.leased <= self.amount + NEARLY

    def teardown(self) -> None:
        """When all is quiet again, calls spend the budget but for what the killed ones have leased."""
        if not hasattr(self, "amount"):
            return
        self.settle_all()
        leased = self.source.leased
        weight = max(self.amount / 200, 0.01)
        spent = sum(self.spend_all(each, weight) for each in self.processes)
        assert self.paid + spent <= self.amount + NEARLY
        assert spent >= self.amount - leased - weight - NEARLY
        assert all(each.lease.delay(self.now, weight + NEARLY) is None for each in self.processes)

    def settle_all(self) -> None:
        for each in self.processes:
            while each.calls:
                weight = each.calls.pop()
                each.lease.ended(weight)
                self.paid += weight
            for _ in range(3):
                self.now += HEARTBEAT_SECONDS
                self.exchange(each, each.lease.return_unused(self.now))
            assert not each.lease.is_held

    def exchange(self, process: Process, request: BudgetRequest | None) -> None:
        request = process.request or request
        process.request = None
        if request is not None:
            process.lease.granted(self.source.grant(self.now, request), self.now, self.now)

    def spend_all(self, process: Process, weight: float) -> float:
        """Calls of this weight, one by one, until one is refused. Returns what they cost."""
        cost = 0.0
        while (delay := process.lease.delay(self.now, weight)) is not None:
            self.exchange(process, process.lease.request(self.now, weight))
            self.now += delay
            if process.lease.delay(self.now, weight) == 0.0:
                process.lease.started(weight)
                process.lease.ended(weight)
                cost += weight
        return cost


TestClusterBudget = ClusterMachine.TestCase
# 1,000 runs in the profile "thorough"
TestClusterBudget.settings = settings(stateful_step_count=50, max_examples=5 * settings().max_examples)
