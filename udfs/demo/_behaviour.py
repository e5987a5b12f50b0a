"""Behaviour: how long the lookup service takes for an answer, and which answers are errors."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import asdict, dataclass
from hashlib import blake2b
from statistics import NormalDist
from typing import Any, Final, NamedTuple

__all__ = ["Behaviour", "Decision"]

_NORMAL: Final = NormalDist()
_MEDIAN_BY_MEAN: Final = 0.6
# A lognormal's mean is its median times exp(sigma squared / 2).
_SIGMA: Final = math.sqrt(2 * math.log(1 / _MEDIAN_BY_MEAN))


class Decision(NamedTuple):
    """What happens to one request: the seconds until its answer, and whether that is a 500."""

    seconds: float
    fails: bool


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Latencies with a long tail, a few stragglers and a few failures; the same for the same seed.

    Latencies are lognormal, their median 0.6 of their mean. Each decision hangs on the seed, the path and how
    often that path was asked, and on nothing else: so two runs that ask the same, in whatever order, see the
    same; and a path that failed gets its next answer with the same chances as any other.

    Args:
        mean_seconds: Mean of the latencies that are no stragglers, finite, at least 0. 0: no waiting.
        straggler_share: Share of the requests that are stragglers, 0 to 1.
        straggler_seconds: The shortest and the longest that a straggler takes; evenly spread between.
        error_share: Share of the answers that are a 500, 0 to 1.
        seed: Any integer.

    Raises:
        ValueError: An argument is out of its range.

    Example:
        >>> Behaviour(straggler_share=0, seed=7).decide("/planes/N14228", asked=1).fails
        False
    """

    mean_seconds: float = 0.020
    straggler_share: float = 0.01
    straggler_seconds: tuple[float, float] = (0.5, 1.5)
    error_share: float = 0.005
    seed: int = 0

    def __post_init__(self) -> None:
        mean, (shortest, longest) = self.mean_seconds, self.straggler_seconds
        _require("mean_seconds must be finite and at least 0", mean, holds=0 <= mean < math.inf)
        _require(
            "straggler_seconds must be two finite numbers, 0 <= shortest <= longest",
            self.straggler_seconds,
            holds=0 <= shortest <= longest < math.inf,
        )
        for name, share in (("straggler_share", self.straggler_share), ("error_share", self.error_share)):
            _require(f"{name} must be 0 to 1", share, holds=0 <= share <= 1)

    @property
    def expected_seconds(self) -> float:
        """Mean latency of a request, stragglers included: what Little's law asks for."""
        straggler = sum(self.straggler_seconds) / 2
        return (1 - self.straggler_share) * self.mean_seconds + self.straggler_share * straggler

    def decide(self, path: str, asked: int) -> Decision:
        """What happens to the request that asks `path` for the `asked`-th time, counted from 1."""
        digest = blake2b(f"{self.seed} {asked} {path}".encode(), digest_size=16).digest()
        failure, straggling, waiting, _ = (_share(number) for number in struct.unpack("<4I", digest))
        straggles = straggling < self.straggler_share
        seconds = self._straggler(waiting) if straggles else self._latency(waiting)
        return Decision(seconds, failure < self.error_share)

    def to_json(self) -> str:
        """The behaviour as text, for the command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Behaviour:
        """The behaviour that `to_json` wrote; what it does not name has its default."""
        fields: dict[str, Any] = json.loads(text)
        if "straggler_seconds" in fields:
            fields["straggler_seconds"] = tuple(fields["straggler_seconds"])
        return cls(**fields)

    def _straggler(self, share: float) -> float:
        shortest, longest = self.straggler_seconds
        return shortest + share * (longest - shortest)

    def _latency(self, share: float) -> float:
        return self.mean_seconds * _MEDIAN_BY_MEAN * math.exp(_SIGMA * _NORMAL.inv_cdf(share))


def _share(number: int) -> float:
    """32 random bits as a number between 0 and 1, and never either, where a lognormal has no value."""
    return (number + 0.5) / 2**32


def _require(message: str, value: object, *, holds: bool) -> None:
    if not holds:
        raise ValueError(f"{message}, got {value}")
