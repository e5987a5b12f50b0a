"""The lookup service's behaviour: the latency of each response, and which responses are errors."""

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
    """The fate of one request: the seconds until its response, and whether that is a 500."""

    seconds: float
    fails: bool


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Random latencies with a long tail, a few stragglers and a few errors, reproducible by a seed.

    Latencies are lognormal, with a median of 0.6 times their mean. A decision depends only on the seed, the path, and
    how many requests for this path there were. So two runs that send the same requests in any order get the same
    responses, and a path that has failed is as likely to fail again as any other.

    Args:
        mean_seconds: Mean latency without stragglers, finite, at least 0. 0 means no delay.
        straggler_share: Share of the requests that are stragglers, 0 to 1.
        straggler_seconds: Shortest and longest latency of a straggler. Latencies between are equally likely.
        error_share: Share of the responses that are a 500, 0 to 1.
        seed: Any integer.

    Raises:
        ValueError: An argument is out of its range.

    Example:
        >>> Behaviour(straggler_share=0, seed=7).decide("/planes/N14228", number=1).fails
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
        """Mean latency of a request, stragglers included, as in Little's law."""
        straggler = sum(self.straggler_seconds) / 2
        return (1 - self.straggler_share) * self.mean_seconds + self.straggler_share * straggler

    def decide(self, path: str, number: int) -> Decision:
        """Decide about one request.

        Args:
            path: The path of the request.
            number: The number of the request among those for this path, from 1.
        """
        digest = blake2b(f"{self.seed} {number} {path}".encode(), digest_size=16).digest()
        error, straggler, latency, _ = (_uniform(bits) for bits in struct.unpack("<4I", digest))
        is_straggler = straggler < self.straggler_share
        seconds = self._straggler_latency(latency) if is_straggler else self._usual_latency(latency)
        return Decision(seconds, error < self.error_share)

    def to_json(self) -> str:
        """The behaviour as JSON, for the command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Behaviour:
        """The behaviour that `to_json` wrote. Missing fields have their defaults."""
        fields: dict[str, Any] = json.loads(text)
        if "straggler_seconds" in fields:
            fields["straggler_seconds"] = tuple(fields["straggler_seconds"])
        return cls(**fields)

    def _straggler_latency(self, uniform: float) -> float:
        shortest, longest = self.straggler_seconds
        return shortest + uniform * (longest - shortest)

    def _usual_latency(self, uniform: float) -> float:
        return self.mean_seconds * _MEDIAN_BY_MEAN * math.exp(_SIGMA * _NORMAL.inv_cdf(uniform))


def _uniform(bits: int) -> float:
    """32 random bits as a number above 0 and below 1, because a lognormal has no value at either end."""
    return (bits + 0.5) / 2**32


def _require(message: str, value: object, *, holds: bool) -> None:
    if not holds:
        raise ValueError(f"{message}, got {value}")
