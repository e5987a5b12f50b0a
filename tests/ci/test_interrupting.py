"""The counter of lines works together with a coverage measurement."""

from __future__ import annotations

import sys
from typing import Any

from tests.interrupting import LineCounter


def ignore(frame: Any, event: str, argument: Any) -> None:
    """A trace function."""


def test_counting_lines_restores_the_trace_function() -> None:
    """Otherwise the coverage of all later tests would be lost."""
    before = sys.gettrace()
    sys.settrace(ignore)
    try:
        with LineCounter().traced():
            pass
        assert sys.gettrace() is ignore
    finally:
        sys.settrace(before)
