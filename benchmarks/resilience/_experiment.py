"""An experiment: what it shows, what it demands, and how it runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from .._report import Line, Section
from ._counting import Points


@dataclass(frozen=True, slots=True)
class Result:
    """What a contender achieved.

    Attributes:
        values: The numbers by column.
        points: (instant, value), for the picture. Empty: it has none.
    """

    values: Mapping[str, float | None]
    points: Points = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Criterion:
    """A limit for a number of this project.

    Attributes:
        column: The number.
        minimum, maximum: The limit, one of them.
        of: The contender. Empty: the first one.
    """

    column: str
    minimum: float | None = None
    maximum: float | None = None
    of: str = ""

    def line(self, lines: Sequence[Line]) -> Line:
        """The line of the contender."""
        return next(line for line in lines if line.name == (self.of or lines[0].name))

    def is_met(self, lines: Sequence[Line]) -> bool:
        """Whether the number is within the limit."""
        value = self.line(lines).values[self.column]
        assert value is not None
        return (self.minimum is None or value >= self.minimum) and (self.maximum is None or value <= self.maximum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment.

    Attributes:
        name: Part of the name of its picture.
        title: Its heading.
        setting: The simulated service and the tasks.
        reading: What the picture shows.
        formats: The format of the numbers, by column.
        criteria: What this project has to achieve.
        contenders: Name -> what runs it. The first is this project. A quick run is shorter and smaller.
        y_label: The axis of the picture, if the results have points.
        span: (start, end, label) of what happens to the service, or None.
        log: Whether the axis of the picture is logarithmic.
    """

    name: str
    title: str
    setting: str
    reading: str
    formats: dict[str, str]
    criteria: list[Criterion]
    contenders: Mapping[str, Callable[[bool], Result]]
    y_label: str = ""
    span: tuple[float, float, str] | None = None
    log: bool = False

    def run(
        self, *, quick: bool, on_step: Callable[[], object] = lambda: None, only: Collection[str] | None = None
    ) -> Section:
        """Run all contenders, or only these."""
        lines, series = [], {}
        for name, contender in self.contenders.items():
            if only is not None and name not in only:
                continue
            result = contender(quick)
            lines.append(Line(name, {column: _rounded(value) for column, value in result.values.items()}))
            if result.points:
                series[name] = result.points
            on_step()
        return Section(self.title, self.setting, self.formats, lines, self.name, series=series)

    def sections(self, *, quick: bool, on_step: Callable[[], object]) -> list[Section]:
        """Run all contenders, as a part of the command line."""
        return [self.run(quick=quick, on_step=on_step)]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
