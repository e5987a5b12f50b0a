"""Writes a page about a run of an operator or of a Spark query."""

# The layout. Imports point down only.
#
#     _collector           report, an observer that is a context manager
#     _page                the page
#     _charts              its drawings
#     _run                 the numbers of a run; many runs as one
#     _series              counts over time

from .._addresses import publish
from ._collector import Report, report

__all__ = ["Report", "report"]

publish(globals())
