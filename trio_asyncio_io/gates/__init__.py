"""Gates: each holds back the start of calls, so that a service gets no more than it can take.

Give one to an operator as `gate=`, or a list of gates, which must all admit a call. A call waits before its
deadline starts, so no call times out because it had to wait. Retries pass the gates as well.
"""

# The layout. These modules neither wait nor import Trio.
#
#     _rate_limit  _budget  _circuit_breaker  _leader_first
#                       the gates; beside the budget, `settle`
#                       `Auto` is in the core, because the option `capacity` names it

from .._core.admission import CallEndedError
from .._core.automatic import Auto
from .._core.gate import Gate, Outcome, PerKey, RefusedError
from .._values.public import publish
from ._budget import Budget, BudgetError, settle
from ._circuit_breaker import CircuitBreaker, CircuitOpenError
from ._leader_first import LeaderFirst
from ._rate_limit import RateLimit

__all__ = [
    "Auto",
    "Budget",
    "BudgetError",
    "CallEndedError",
    "CircuitBreaker",
    "CircuitOpenError",
    "Gate",
    "LeaderFirst",
    "Outcome",
    "PerKey",
    "RateLimit",
    "RefusedError",
    "settle",
]

publish(globals())
