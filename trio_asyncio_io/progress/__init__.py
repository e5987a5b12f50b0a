"""A progress line for a running operator, in a terminal, a notebook or a log. Needs the extra `progress`."""

# The layout. Imports point down only.
#
#     _progress    an operator's numbers as a line of text, which changes during a run
#     _display     shows a line; only here is rich imported, when a line is shown

from .._values.public import publish
from ._progress import progress, summary

__all__ = ["progress", "summary"]

publish(globals())
