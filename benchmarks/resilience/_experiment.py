"""An experiment: what it shows, what it demands, and how it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .._report import Line, Section

__all__ = ["Criterion", "Experiment", "Points", "Result"]

Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Result:
    """What a contender achieved.

    Attributes:
        values: The numbers by column.
        points: (instant, value), for the picture.
    """

    values: dict[str, float | None]
    points: Points


@dataclass(frozen=True, slots=True)
class Criterion:
    """A limit for a number of this project.

    Attributes:
        column: The number.
        minimum, maximum: The limits. None: no such limit.
    """

    column: str
    minimum: float | None = None
    maximum: float | None = None

    def is_met(self, line: Line) -> bool:
        """Whether the number is within the limits."""
        value = line.values[self.column]
        assert value is not None
        return (self.minimum is None or value >= self.minimum) and (self.maximum is None or value <= self.maximum)

    def text(self, form: str) -> str:
        """The limits, with numbers in this format."""
        limits = [("at least", self.minimum), ("at most", self.maximum)]
        return f"{self.column}: " + ", ".join(f"{word} {form.format(x)}" for word, x in limits if x is not None)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment.

    Attributes:
        name: Part of the name of its picture.
        title: Its heading.
        setting: The simulated service and the tasks.
        reading: What the picture shows.
        y_label: The axis of the picture.
        formats: The format of the numbers, by column.
        criteria: What this project has to achieve.
        contenders: Name -> what runs it. The first is this project. A quick run is shorter and smaller.
        span: (start, end, label) of what happens to the service, or None.
        log: Whether the axis of the picture is logarithmic.
    """

    name: str
    title: str
    setting: str
    reading: str
    y_label: str
    formats: dict[str, str]
    criteria: list[Criterion]
    contenders: dict[str, Callable[[bool], Result]]
    span: tuple[float, float, str] | None = None
    log: bool = False

    def run(self, *, quick: bool, on_step: Callable[[], object]) -> Section:
        """Run all contenders."""
        lines, series = [], {}
        for name, contender in self.contenders.items():
            result = contender(quick)
            lines.append(Line(name, {column: _rounded(value) for column, value in result.values.items()}))
            series[name] = result.points
            on_step()
        return Section(self.title, self.setting, self.formats, lines, self.name, "resilience", series)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
