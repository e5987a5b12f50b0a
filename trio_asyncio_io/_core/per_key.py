"""Gates of which each key has its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from copy import deepcopy
from typing import Any

from .checks import check_callable
from .describe import describe
from .gate import Gate

__all__ = ["PerKey"]


class PerKey:
    """Gates of which each key has its own: for services with many hosts, tenants or accounts.

    Give it to an operator as `gate=`, alone or in a list with gates for all calls. A key that is held back does not
    hold back the others: its calls wait without a slot. The buffer limits how many wait; when all of its records wait
    for one key, the operator reads no further.

    The first call for a key copies the gates. A key is forgotten when none of its calls waits or runs, and its gates
    may be forgotten; see `Gate.may_forget`. What the gates of the other keys have found stays with this object, for
    about 10,000 keys without calls: beyond, the oldest are forgotten.

    Args:
        gate: The gate that is copied for each key, or a list of gates, which must all admit a call.
        key: The arguments of a call -> hashable. It is also called for each retry and each failure, so it must be
            cheap, and always have the same result. None as a result: the call passes none of these gates.

    Raises:
        TypeError: An argument has another type.

    Example:
        def host(url):
            return urlsplit(url).hostname

        gate = PerKey([AdaptiveRate(), CircuitBreaker()], key=host)
        ordered_wait(urls, fetch, timeout=10.0, gate=gate)
    """

    def __init__(self, gate: Gate | Sequence[Gate], key: Callable[..., Hashable]) -> None:
        gates: object = (gate,) if isinstance(gate, Gate) else gate
        if not (isinstance(gates, Sequence) and gates and all(isinstance(each, Gate) for each in gates)):
            raise TypeError(f"the gate of a PerKey must be a Gate or a list of gates, got {describe(gate)}")
        self.gates: tuple[Gate, ...] = tuple(gates)
        self.key = check_callable("key", key)
        self.copies: tuple[Copies, ...] = tuple(Copies(each) for each in self.gates)

    def __repr__(self) -> str:
        gates = self.gates[0] if len(self.gates) == 1 else list(self.gates)
        return f"PerKey({gates!r}, key={describe(self.key)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PerKey, (self.gates, self.key)


class Copies(dict[Hashable, Gate]):
    """The copies of one gate, by key.

    Args:
        gate: Is copied for each key that is missing.
    """

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self.gate = gate

    def __missing__(self, key: Hashable) -> Gate:
        self[key] = copy = deepcopy(self.gate)
        return copy
