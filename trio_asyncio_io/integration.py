"""Helpers for packages around the operator, such as `udfs`: signatures, checks, texts and the progress display.

Experimental: these names may change in any release. An application does not need them.
"""

from __future__ import annotations

from ._account.statistics import gates_and_hedges
from ._core.gate import sum_as_written
from ._operator.calls import usage_of_all
from ._operator.cpu import cpu_wait
from ._operator.function import KnowsOutputs, is_async, name_of
from ._values.checks import check_bool, check_int, check_number
from ._values.describe import describe, duration
from ._values.public import check_keywords, list_keywords, publish
from ._watch import display_on
from ._watch.job import TaskTimes

__all__ = [
    "KnowsOutputs",
    "TaskTimes",
    "check_bool",
    "check_int",
    "check_keywords",
    "check_number",
    "cpu_wait",
    "describe",
    "display_on",
    "duration",
    "gates_and_hedges",
    "is_async",
    "list_keywords",
    "name_of",
    "sum_as_written",
    "usage_of_all",
]

publish(globals())
