"""Writes a page about a run of an operator or of a Spark query."""

# The layout. Imports point down only.
#
#     _collector           report, an observer that is a context manager
#     _display             what a notebook shows
#     _page  _files        the page; the file that it is written to, and the files of Spark tasks
#     _charts  _texts      its charts; what it shows of options, records and exceptions
#     _run  _plot  _style  the numbers of a run; a drawing with axes; the style sheet
#     _series  _units      counts over time; numbers for people

from .._addresses import publish
from ._collector import Report, report

__all__ = ["Report", "report"]

publish(globals())
