"""The weight of the present call, which `settle` corrects."""

from __future__ import annotations

from .._core.gate import CURRENT_CALL
from .._values.checks import check_optional_name, check_weight


def settle(actual: float, name: str | None = None) -> None:
    """Correct what the present call weighs, when its actual weight is known.

    Call it in the function, for example with the number of tokens that a response reports. Each gate with a `weight`
    takes the difference into account for the next calls. Without such a gate, it has no effect.

    Settle once, or only downwards: what a call gives back, another call may spend immediately. The end of a call is
    final, so a task that outlives the call can no longer settle it. Nor can the losing call of
    `hedged`.

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
    check_optional_name(name)
    call = CURRENT_CALL.get()
    if call is not None:
        call.settle(number, name)
