"""Pages of reports and displays of notebooks, read by an HTML parser."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

VOID = {"meta", "br"}


class Html(HTMLParser):
    """The text and the attributes of HTML whose elements must be closed. Titles of drawings are not text."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes: dict[str, dict[str, str | None]] = {}
        self.open: list[str] = []
        self._texts: list[str] = []

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._texts).split())

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.attributes.setdefault(tag, {}).update(attributes)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"svg", "style"} & set(self.open):
            self._texts.append(data)


def read(text: str) -> Html:
    """Read HTML."""
    found = Html()
    found.feed(text)
    found.close()
    assert found.open == []
    return found


class Page(Html):
    """A page: its text by heading, its cards, and what it refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.sections: dict[str, list[str]] = {}
        self.sources: list[str] = []
        self.tags: set[str] = set()
        self.cards: dict[str, str] = {}
        self._section: list[str] = []
        self._number = ""
        self.feed(text_of(path))
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        super().handle_starttag(tag, attributes)
        self.tags.add(tag)
        self.sources += [value for name, value in attributes if name in {"src", "href"}]

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["h2"]:
            self._section = self.sections[data] = []
        elif self.open[-2:] == ["div", "b"]:
            self._number = data
        elif self.open[-2:] == ["div", "span"]:
            self.cards[data] = self._number
        elif data.strip():
            self._section.append(data)


def text_of(path: Path) -> str:
    return path.read_text("utf-8")
