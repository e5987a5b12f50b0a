"""All states of two records, from the package's orders: each node is where the two records are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pictures.figure import Figure, box, text
from trio_asyncio_io._core.queue import CompletionOrder, InputOrder, Order

PLACES = ["source", "waiting", "running", "completed", "leaving", "gone"]
Node = tuple[str, str]
Edges = dict[tuple[Node, Node], str]
LEFT, COLUMN, ROW, WIDE, HIGH = 108, 88, 40, 62, 22


class Two:
    """Two records on their way through an order with two slots."""

    def __init__(self, make: Callable[[], Order]) -> None:
        self.order = make()
        self.entries: list[Any] = []
        self.started: list[Any] = []
        self.completed: list[Any] = []
        self.leaving: list[Any] = []
        self.gone: list[Any] = []

    def steps(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """What may happen next."""
        if len(self.entries) < len(("first", "second")):
            yield "accept", self._accept
        for entry in self.entries:
            if entry not in self.started:
                yield "start", partial(self.started.append, entry)
                break  # the oldest one first
        for entry in self.started:
            if not entry.is_done:
                yield f"complete {entry.sequence}", partial(self._complete, entry)
        if self.order.has_completed():
            yield "emit", lambda: self.leaving.extend(self.order.take(2))
        if self.leaving:
            yield "receive", lambda: self.gone.append(self.leaving.pop(0))

    def _accept(self) -> None:
        number = len(self.entries)
        self.entries.append(self.order.entry_type(number, number, number, 0.0))
        self.order.append(self.entries[-1])

    def _complete(self, entry: Any) -> None:
        entry.complete(["result"])
        self.completed.append(entry)

    def state(self) -> tuple[Any, ...]:
        """The node, and what the order and the consumer depend on."""
        return self.node(), *([each.sequence for each in which] for which in (self.completed, self.leaving))

    def node(self) -> Node:
        first, second = (self._place(number) for number in (0, 1))
        return first, second

    def _place(self, number: int) -> str:
        if number >= len(self.entries):
            return "source"
        entry = self.entries[number]
        if entry in self.gone:
            return "gone"
        if entry in self.leaving:
            return "leaving"
        if entry.is_done:
            return "completed"
        return "running" if entry in self.started else "waiting"


def states(make: Callable[[], Order]) -> Edges:
    """The steps between the nodes that can be reached. An order cannot be copied: each path is made again."""
    edges: Edges = {}
    seen, todo = [Two(make).state()], deque([()])
    while todo:
        path = todo.popleft()
        for name, _ in list(_after(make, path).steps()):
            before, after = _after(make, path), _after(make, (*path, name))
            edges[before.node(), after.node()] = name.split()[0]
            if after.state() not in seen:
                seen.append(after.state())
                todo.append((*path, name))
    return edges


def _after(make: Callable[[], Order], path: tuple[str, ...]) -> Two:
    two = Two(make)
    for name in path:
        dict(two.steps())[name]()
    return two


def interleavings() -> str:
    """The states of two records, ordered and unordered."""
    ordered, unordered = states(InputOrder), states(CompletionOrder)
    figure = Figure(
        "Two records: all states that can be reached",
        f"Two grids. A column is where the first record is, a row where the second one is. Ordered: {_count(ordered)}. "
        f"Unordered: {_count(unordered)}. In the additional states the second record is leaving or gone, and the "
        "first one is not as far.",
        "interleavings",
    )
    _draw(figure, f"ordered: {_count(ordered)}", ordered, set())
    figure.y += 16
    _draw(figure, f"unordered: {_count(unordered)}", unordered, _nodes(unordered) - _nodes(ordered))
    figure.label("To the right, the first record moves; down, the second. Orange: the second is ahead.")
    return figure.svg()


def _nodes(edges: Edges) -> set[Node]:
    return {node for edge in edges for node in edge}


def _count(edges: Edges) -> str:
    return f"{len(_nodes(edges))} states, {len(edges)} steps"


def _draw(figure: Figure, title: str, edges: Edges, marked: set[Node]) -> None:
    figure.y += 26
    figure.add(text(14, figure.y, title, "name"))
    figure.y += 20
    for column, place in enumerate(PLACES):
        figure.add(text(LEFT + COLUMN * column + WIDE / 2, figure.y, f"1st {place}", "soft", "middle"))
        figure.add(text(14, figure.y + 24 + ROW * column, f"2nd {place}", "soft"))
    top = figure.y + 8
    for before, after in edges:
        figure.add(_edge(top, before, after))
    for node in sorted(_nodes(edges), key=_position):
        column, row = _position(node)
        look = "wall-box" if node in marked else "running"
        figure.add(box(LEFT + COLUMN * column, top + ROW * row, WIDE, HIGH, "", look))
    figure.y = top + ROW * len(PLACES)


def _position(node: Node) -> tuple[int, int]:
    return PLACES.index(node[0]), PLACES.index(node[1])


def _edge(top: float, before: Node, after: Node) -> str:
    """A line from a box to the next one: to the right, down, or both. All steps go forward, so it has no tip."""
    (column, row), (to_column, to_row) = _position(before), _position(after)
    x = LEFT + COLUMN * column + (WIDE if to_column > column else WIDE / 2)
    y = top + ROW * row + (HIGH if to_row > row else HIGH / 2)
    to_x = LEFT + COLUMN * to_column + (0 if to_column > column else WIDE / 2)
    to_y = top + ROW * to_row + (0 if to_row > row else HIGH / 2)
    return f'<path class="arrow" d="M{x:g} {y:g}L{to_x:g} {to_y:g}"/>'
