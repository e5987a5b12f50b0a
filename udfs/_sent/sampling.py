"""Sampling: functions that a forecast runs in workers in the place of the user's function. Neither calls it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark import cloudpickle

from trio_asyncio_io import AsyncFunction

__all__ = ["Capture", "Replay", "identity_of"]


class Capture(AsyncFunction[Any, bytes]):
    """Returns the values of the input columns, as the user's function would get them, pickled."""

    async def invoke(self, *inputs: Any) -> bytes:
        """Pickle the inputs."""
        return bytes(cloudpickle.dumps(inputs))


class Replay(AsyncFunction[Any, Any]):
    """Returns answers that are known, so that a memo stores them.

    Args:
        function: The user's function, whose name the memo has.
        answers: By `identity_of` the inputs.
    """

    def __init__(self, function: Any, answers: Mapping[str, Any]) -> None:
        self.function = function
        self._answers = answers

    async def invoke(self, *inputs: Any) -> Any:
        """The answer for these inputs. Raises a `KeyError` if there is none."""
        return self._answers[identity_of(inputs)]


def identity_of(inputs: tuple[Any, ...]) -> str:
    """A text that is the same for equal inputs. They are plain values, and may be unhashable."""
    return repr(inputs)
