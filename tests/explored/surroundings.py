"""What the worlds of the core and of the shell have in common: their elements, and what is promised for the outputs."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, fields
from math import inf
from typing import Any

from tests.explored.loom import Violation
from trio_asyncio_io import StreamRecord, Watermark

__all__ = ["Outputs", "Surroundings", "key_of", "name_of", "named"]

Name = tuple[Any, ...]  # of an output: (record, number of the output), or ("watermark", timestamp)


def key_of(value: int) -> int:
    """0, 1, 1, 0, 0, 1, 1, ...: the second record of a key may be ready before an older one of the other key."""
    return (value + 1) // 2 % 2


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """The elements, and the options of the operator.

    Attributes:
        records: Their number. Their values are 0, 1, ...
        walls: The records that a watermark follows.
        fails: Whether the last attempt of a record may raise, too.
        flatten: By record, the number of its outputs.
        gate: "one" for all calls, or one "per key".
        closings: How often it may close.
    """

    records: int = 2
    walls: tuple[int, ...] = ()
    mode: Any = "ordered"
    capacity: int = 2
    buffer: int = 3
    timeout: float = inf
    retries: int = 0
    fails: bool = False
    flatten: tuple[int, ...] | None = None
    group: int = 0
    group_split: bool = False
    gate: str = ""
    closings: int = 1
    refuses: bool = False

    def __str__(self) -> str:
        values = {each.name: (getattr(self, each.name), each.default) for each in fields(self)}
        return ", ".join(f"{name}={value!r}" for name, (value, default) in values.items() if value != default)

    def elements(self) -> list[Any]:
        """The elements of the source. With watermarks, records have their values as timestamps."""
        found: list[Any] = []
        for value in range(self.records):
            found.append(StreamRecord(value, value) if self.walls else value)
            found += [Watermark(value)] * (value in self.walls)
        return found

    def outputs(self) -> dict[Name, int]:
        """All outputs in input order, if no record fails, with the number of their segment."""
        found: dict[Name, int] = {}
        segment = 0
        for value in range(self.records):
            for part in range(1 if self.flatten is None else self.flatten[value]):
                found[value, part] = segment
            if value in self.walls:
                found["watermark", value] = segment + 1
                segment += 2
        return found

    def check_call(self, value: int, running: list[int], done: Container[int]) -> None:
        """A call of this record begins."""
        if value in done:
            raise Violation(f"{value} has its result, and is called again")
        if value in running:
            raise Violation(f"two calls of {value} run at once")
        if self.mode == "keyed" and key_of(value) in map(key_of, running):
            raise Violation(f"two calls of the key of {value} run at once")


class Outputs:
    """The outputs that were received: each once, in order, and none across a watermark.

    Attributes:
        got: Their names.
    """

    def __init__(self, setting: Surroundings) -> None:
        self.got: list[Name] = []
        self._mode = setting.mode
        self._segments = setting.outputs()
        self._places = {name: place for place, name in enumerate(self._segments)}

    def receive(self, name: Name) -> None:
        """An output is received."""
        if name in self.got:
            raise Violation(f"{named(name)} is received twice")
        if name not in self._places:
            raise Violation(f"{named(name)} is received, which nobody has sent")
        for each in self.got:
            if self._segments[each] > self._segments[name]:
                raise Violation(f"{named(name)} has crossed a watermark")
            if self._places[each] > self._places[name] and self._are_ordered(name, each):
                raise Violation(f"{named(name)} is received after {named(each)}")
        self.got.append(name)

    def _are_ordered(self, name: Name, other: Name) -> bool:
        if self._mode == "keyed" and "watermark" not in {name[0], other[0]}:
            return key_of(name[0]) == key_of(other[0])
        return bool(self._mode == "ordered")

    def check_end(self, is_excused: Callable[[int], bool]) -> None:
        """Everything was received, but the outputs of records that are excused."""
        for name in self._places:
            if name not in self.got and (name[0] == "watermark" or not is_excused(name[0])):
                raise Violation(f"{named(name)} is lost")


def name_of(output: Any) -> Name:
    """The name of what was received."""
    if isinstance(output, Watermark):
        return "watermark", output.timestamp
    result: Name = output.value if isinstance(output, StreamRecord) else output
    return result


def named(name: Name) -> str:
    """The words of a trace."""
    if name[0] == "watermark":
        return f"the watermark {name[1]}"
    return f"output {name[1] + 1} of {name[0]}" if name[1] else f"the result of {name[0]}"
