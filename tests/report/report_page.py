"""A page of a report, read by an HTML parser."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

VOID = {"meta", "br"}


class Page(HTMLParser):
    """A page: its text by heading, its tables, and a check that its elements are closed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.sections: dict[str, list[str]] = {}
        self.sources: list[str] = []
        self.tags: set[str] = set()
        self.cards: dict[str, str] = {}
        self._open: list[str] = []
        self._section: list[str] = []
        self._number = ""
        self.feed(text_of(path))
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.tags.add(tag)
        self.sources += [value for name, value in attributes if name in {"src", "href"}]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attributes: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["h2"]:
            self._section = self.sections[data] = []
        elif self._open[-2:] == ["div", "b"]:
            self._number = data
        elif self._open[-2:] == ["div", "span"]:
            self.cards[data] = self._number
        elif data.strip():
            self._section.append(data)


def text_of(path: Path) -> str:
    return path.read_text("utf-8")
