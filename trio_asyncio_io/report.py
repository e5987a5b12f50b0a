"""Writes a page about a run of an operator or of a Spark query."""

from ._values.public import publish
from ._watch.report import Report, report

__all__ = ["Report", "report"]

publish(globals())
