"""What the worlds of the core and of the shell have in common: their records, their gate and the order of outputs."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, fields
from math import inf
from typing import Any

from tests.explored.loom import Violation
from trio_asyncio_io import StreamRecord, Watermark
from trio_asyncio_io.gates import Gate

BACKOFF = 1.0
Name = tuple[Any, ...]  # of an output: (record, number of the output), or ("watermark", timestamp)


def key_of(value: int) -> int:
    """0, 1, 1, 0, 0, 1, 1, ...: the second record of a key may be ready before an older one of the other key."""
    return (value + 1) // 2 % 2


@dataclass(frozen=True, kw_only=True)
class BaseSetting:
    """The elements, and the options of the operator.

    Attributes:
        records: Their number. Their values are 0, 1, ...
        walls: The records that a watermark follows.
        fails: Whether the last attempt of a record may raise, too.
        flatten: By record, the number of its outputs.
        gate: "one" for all calls, or one "per key".
        closings: How often it may close.
        refuses: Whether it may refuse calls.
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

    def results(self, value: int) -> list[Name]:
        """The names of the outputs of a record."""
        return [(value, part) for part in range(1 if self.flatten is None else self.flatten[value])]

    def check_call(self, value: int, running: list[int], done: Container[int]) -> None:
        """A call of this record begins."""
        if value in done:
            raise Violation(f"{value} has its result, and is called again")
        if value in running:
            raise Violation(f"two calls of {value} run at once")
        if self.mode == "keyed" and key_of(value) in map(key_of, running):
            raise Violation(f"two calls of the key of {value} run at once")

    def must_retry_first(self, due: dict[int, float]) -> bool:
        """Whether as many records wait for their retry as can run at once: no new one may start."""
        return self.gate != "per key" and len(due) >= self.capacity * (self.group or 1)

    def ready(
        self,
        unfinished: Iterable[int],
        busy: Container[int],
        due: dict[int, float],
        now: float,
        is_open: Callable[[int], bool],
    ) -> list[int]:
        """The records that could start in a free slot, if new ones may start.

        Args:
            unfinished: Those without results, in arrival order.
            busy: Those that are in a call.
            due: When the backoff of a record ends.
            now: The time.
            is_open: Whether the gate of a key is open.
        """
        values = list(unfinished)
        if self.mode == "keyed":  # only the first one of each key
            values = list({key_of(value): value for value in reversed(values)}.values())
        return [each for each in values if each not in busy and is_open(key_of(each)) and due.get(each, 0.0) <= now]


class Bit(Gate):
    """An abstract gate: one bit says whether it is open, and the world decides when it changes.

    Attributes:
        calls: The number of calls that it has admitted, and that run.
    """

    is_open: Any

    def __init__(self) -> None:
        self.calls = 0

    def started(self, now: float, weight: float) -> None:
        if not self.is_open:
            raise Violation("a call starts while its gate is closed")
        self.calls += 1

    def ended(self, now: float, seconds: float, outcome: Any, weight: float) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise Violation("a call has ended twice in its gate")


class Outputs:
    """The outputs that were received: each once, in order, and none across a watermark.

    Attributes:
        got: Their names.
    """

    def __init__(self, setting: BaseSetting) -> None:
        self.got: list[Name] = []
        self._mode = setting.mode
        self._segments: dict[Name, int] = {}  # of all outputs, in input order
        for value in range(setting.records):
            segment = 2 * sum(wall < value for wall in setting.walls)
            self._segments |= dict.fromkeys(setting.results(value), segment)
            if value in setting.walls:
                self._segments["watermark", value] = segment + 1
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
    name: Name = output.value if isinstance(output, StreamRecord) else output
    return name


def named(name: Name) -> str:
    """The words of a trace."""
    if name[0] == "watermark":
        return f"the watermark {name[1]}"
    return f"output {name[1] + 1} of {name[0]}" if name[1] else f"the result of {name[0]}"
