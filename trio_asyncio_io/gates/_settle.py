"""Corrects the weight of the current call."""

from __future__ import annotations

from math import inf

from .._core.checks import check_number
from .._core.gate import CURRENT_CALL

__all__ = ["settle"]


def settle(actual: float) -> None:
    """Correct what the present call weighs, when its actual weight is known.

    Call it in the function, for example with the number of tokens that a response reports. Each gate with a `weight`
    takes the difference into account for the next calls. A later call of `settle` replaces an earlier one. Without
    such a gate, it has no effect.

    Args:
        actual: The weight, at least 0 and finite, in the unit of the gate's `weight`.

    Raises:
        TypeError, ValueError: `actual` is not such a number.

    Example:
        async def ask(prompt):
            answer = await client.complete(prompt)
            settle(answer.usage.total_tokens)
            return answer.text
    """
    check_number("actual", actual, "a finite number and not negative", lambda number: 0 <= number < inf)
    call = CURRENT_CALL.get()
    if call is not None:
        call.settle(actual)
