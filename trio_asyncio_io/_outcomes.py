"""The default classifier: what the exception of a call says about the service."""

from __future__ import annotations

from ._core.gate import Outcome
from ._core.probe import attribute_of, leaves_of
from ._core.retry_after import retry_after
from ._transient import status_of, transient

__all__ = ["outcome_of"]

_TOO_MANY_REQUESTS, _UNAVAILABLE = 429, 503


def outcome_of(error: Exception) -> Outcome:
    """The outcome of a call that raised this exception, for gates.

    * "throttled": an exception with a `retry_after` attribute that is not None, a status 429, or a status 503 with a
      `Retry-After` header. Its `retry_after` is what the function `retry_after` reads.
    * "overload": a status 408 or 5xx, a timeout, a connection error; see `transient`.
    * "error": everything else.

    The status is that of `error.response` or of the error itself. Of a group, the worst exception counts, in this
    order. Never raises.
    """
    kinds = {_kind_of(leaf) for leaf in leaves_of(error) if isinstance(leaf, Exception)}
    if "throttled" in kinds:
        return Outcome("throttled", retry_after(error), error)
    return Outcome("overload" if "overload" in kinds else "error", error=error)


def _kind_of(error: Exception) -> str:
    status = status_of(error)
    if status == _TOO_MANY_REQUESTS or attribute_of(error, "retry_after") is not None:
        return "throttled"
    if status == _UNAVAILABLE and retry_after(error) is not None:
        return "throttled"
    return "overload" if transient(error) else "error"
