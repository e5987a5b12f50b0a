"""Numbers in hand-written pages, filled in from the report, so that no two pages disagree.

A page marks each number with its source: section, line, column and, optionally, a format.

    <!--figure: http | httpx, its own pool | ratio | {:.0f}-->29<!--/figure--> times as long
"""

from __future__ import annotations

import re

from ._report import Report

FIGURE = re.compile(r"(<!--figure: (?P<place>[^>]*?)-->)[^<]*(<!--/figure-->)")


def filled(text: str, report: Report) -> str:
    """The page with each marked number taken from the report.

    Raises:
        LookupError: The report has no such number; the message has the mark.
    """
    return FIGURE.sub(lambda match: f"{match[1]}{number(match['place'], report)}{match[3]}", text)


def number(place: str, report: Report) -> str:
    """The number at "section | line | column" or "section | line | column | format", as text.

    Raises:
        LookupError: The report has no such number.
    """
    name, line_name, column, *form = (part.strip() for part in place.split("|"))
    section = report.section(name)
    line = section and section.line(line_name)
    value = line.values.get(column) if line else None
    if section is None or value is None:
        raise LookupError(f"the report has no number for the mark <!--figure: {place}-->")
    return (form[0] if form else section.formats[column]).format(value).replace("%", " %")
