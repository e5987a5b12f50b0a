"""The sample: real calls, for the forecast of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .._core.retry import RetryStrategy
from .._values.describe import duration, plural

CallOutcome: TypeAlias = Literal["answered", "retried result", "refused", "failed", "cut"]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A real call of a sample.

    Attributes:
        start: Its start, in seconds since the first call of the sample.
        seconds: Its duration.
        outcome: "answered": it returned. "retried result": it returned, but the retry strategy retries this result.
            "refused": it raised, and the service requests fewer calls, such as with a status 429. "failed": it raised
            another exception. "cut": a timeout cancelled it.
        weight: Its weight, such as tokens or money: what it has settled, or else its estimate, even if it failed or was
            cut, because the service may have charged it. Second calls of `hedged` are included.
        load: The calls in flight when it started, itself included.
        error: The exception, or None.
        result: The result that the retry strategy retries, or None.
        estimate: Its weight before the call; 0 without `weight=`.
    """

    start: float
    seconds: float
    outcome: CallOutcome
    weight: float
    load: int
    error: Exception | None = None
    result: Any = None
    estimate: float = 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """Real calls, in the order of their starts, and how they were made. Created by `record`.

    Attributes:
        calls: Every call, retries included.
        elements: The number of elements.
        answers: (element, result) of each answered call, so that you need not pay for an answer twice.
        timeout: The timeout of an element, in seconds.
        retry: The retry strategy, or None.
        is_weighted: Whether the calls have weights.
    """

    calls: Sequence[RecordedCall]
    elements: int
    answers: Sequence[tuple[Any, Any]]
    timeout: float
    retry: RetryStrategy | None = None
    is_weighted: bool = False

    @property
    def tested(self) -> int:
        """The highest number of calls in flight. Nothing is known about higher loads."""
        return max((call.load for call in self.calls), default=0)

    @property
    def seconds(self) -> float:
        """The time from the start of the first call to the end of the last one."""
        return max((call.start + call.seconds for call in self.calls), default=0.0)

    def __str__(self) -> str:
        counts = Counter(call.outcome for call in self.calls)
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.most_common())
        return (
            f"{plural(len(self.calls), 'call')} for {plural(self.elements, 'element')} in {duration(self.seconds)}, "
            f"up to {self.tested:,} at once: {outcomes or 'none'}"
        )
