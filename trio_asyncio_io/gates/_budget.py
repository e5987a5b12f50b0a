"""The gate `Budget`, which allows calls until a sum is spent, and `settle`, which corrects the weight of a call."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import inf

from .._core.gate import CURRENT_CALL, DECIMALS, ConfiguredGate, Outcome, RefusedError, exact
from .._values.checks import check_number, check_optional_name, check_weight
from .._values.describe import plural


class BudgetError(RefusedError):
    """The budget does not allow the call, so it was not made. Its element fails; with `on_error`, the others go on."""


class Budget(ConfiguredGate):
    """Allows calls until their weights, such as their prices, have used up an amount.

    A call reserves its estimated weight when it starts. `settle`, called in the function, replaces the estimate by what
    the call cost; the difference is available to other calls immediately. So at every moment

        spent + reserved <= amount

    as long as no call costs more than its estimate. Where calls do, only the calls in flight can exceed it:
    no other call starts.

    A call that does not fit is refused with a `BudgetError`, which is never retried. It waits only if it would fit
    without the reservations of calls that run now, until enough of them have been settled or have ended. So in the end,
    less is left than the estimate of each refused call.

    A call that fails, times out or is cancelled costs what it has settled, or else its whole reservation, because the
    service may have charged it. A call that was not made, because the operator stopped before, costs nothing. Each
    attempt of a retry strategy, and each second call of `hedged`, costs its own weight. A call that weighs 0 is always
    allowed.

    The state stays with the object, from one operator to the next. A copy, which includes a pickled one, has spent
    nothing. So a `PerKey` gives each key a budget of its own, and in Spark each Python worker has one: a job has one
    budget with `udfs.ClusterBudget`.

    Args:
        amount: The budget, not negative and finite, in the unit of `weight`. Without `weight`: a number of calls.
        weight: The arguments of a call -> its estimated weight, at least 0 and finite. None (the default): each call
            weighs 1.
        name: Budgets of one name are one budget within a Trio run, and the one that was used first has its sums; see
            `Gate`. `settle` can name it. None (the default): it is not shared.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        budget = Budget(50.0, weight=lambda prompt: 0.00001 * len(prompt))
        async with ordered_wait(prompts, ask, timeout=60.0, gate=budget) as answers:
            ...
        print(budget.left)
    """

    must_keep = True
    reacts_to_ends = False
    _arguments = ("amount",)
    _callback = "weight"

    def __init__(self, amount: float, *, weight: Callable[..., float] | None = None, name: str | None = None) -> None:
        legal = "finite and not negative"
        self.amount = check_number("amount", amount, legal, lambda number: 0 <= number < inf)
        self._set(weight, name)
        self._spent = Decimal(0)
        self._committed = Decimal(0)  # spent or reserved
        self._calls = 0

    @property
    def spent(self) -> float:
        """The cost of all calls that have ended."""
        return float(self._spent)

    @property
    def reserved(self) -> float:
        """The estimated or settled weights of the calls that run."""
        return float(DECIMALS.subtract(self._committed, self._spent))

    @property
    def left(self) -> float:
        """The weight that is left for more calls, at least 0.0."""
        return float(max(Decimal(0), DECIMALS.subtract(exact(self.amount), self._committed)))

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - a budget has no time
        """0.0 if the weight fits; `math.inf` if only the reservations of running calls prevent it.

        Raises:
            BudgetError: It does not fit.
        """
        needed, amount = exact(weight), exact(self.amount)
        if not needed or DECIMALS.add(self._committed, needed) <= amount:
            return 0.0
        if DECIMALS.add(self._spent, needed) <= amount:
            return inf
        digits = ",.2f" if self.amount >= 1 else ".3g"
        used = f"{self.spent:{digits}}" + (f" and {self.reserved:{digits}} reserved" if self.reserved else "")
        raise BudgetError(f"budget used up after {plural(self._calls, 'call')}: {used} of {self.amount:{digits}}")

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        """Reserve the weight."""
        self._calls += 1
        self._committed = DECIMALS.add(self._committed, exact(weight))

    def correct(self, weight: float, actual: float) -> None:
        """Replace the reservation of a call by its actual weight."""
        self._committed = DECIMALS.add(self._committed, DECIMALS.subtract(exact(actual), exact(weight)))

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:  # noqa: ARG002
        """Spend what is reserved for the call. If the call was not made after all, free it."""
        if not outcome.was_made:
            self._calls -= 1
            self.correct(weight, 0.0)
            return
        self._spent = DECIMALS.add(self._spent, exact(weight))

    def may_forget(self, now: float) -> bool:  # noqa: ARG002
        """Whether nothing has been spent."""
        return not self._spent

    def __repr__(self) -> str:
        name = "" if self.name is None else f", name={self.name!r}"
        return f"Budget({self.amount!r}{name}, spent={self.spent!r}, reserved={self.reserved!r})"


def settle(actual: float, name: str | None = None) -> None:
    """Correct what the present call weighs, when its actual weight is known.

    Call it in the function, for example with the number of tokens that a response reports. Each gate with a `weight`
    takes the difference into account for the next calls. Without such a gate, it has no effect.

    Settle once, or only downwards: what a call gives back, another call may spend immediately. The end of a call is
    final, so a task that outlives the call can no longer settle it. Nor can the losing call of `hedged`.

    Args:
        actual: The weight, at least 0 and finite, in the unit of the gate's `weight`. It may exceed the estimate, but
            not what the call has settled before.
        name: Correct the weight in the gates of this name only, if others have another unit. None (the default): in
            all gates with a weight.

    Raises:
        TypeError, ValueError: `actual` is not such a number, or `name` not a name.
        CallEndedError: The call has ended. Nothing changes.

    Example:
        async def ask(prompt):
            answer = await client.complete(prompt)
            settle(answer.usage.total_tokens, "tokens")
            settle(answer.usage.total_tokens * 0.00001, "dollars")
            return answer.text
    """
    number = check_weight("settle: actual", actual)
    check_optional_name("name", name)
    call = CURRENT_CALL.get()
    if call is not None:
        call.settle(number, name)
