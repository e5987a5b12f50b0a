"""Trace files: JSON objects in Chrome's Trace Event Format."""

from __future__ import annotations

import json
import os
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

__all__ = ["FORMAT", "WRITER", "Trace", "TraceError", "read", "write"]

Trace: TypeAlias = dict[str, Any]

# In `otherData`: who has written the trace, and the version of its content
WRITER, FORMAT = "trio_asyncio_io", 1


class TraceError(ValueError):
    """A file is not a trace of this package, or traces do not fit together. The message says why, in one sentence."""


def read(path: str | PathLike[str]) -> Trace:
    """The trace in a file.

    Raises:
        TraceError: The file is not a trace that a `TraceRecorder` or `merge` has written.
        OSError: The file cannot be read.
    """
    content = Path(path).read_bytes()
    if not content.strip():
        raise TraceError(f"{path} is empty: the run that should have written it may have been killed")
    try:
        trace = json.loads(content)
    except ValueError as error:  # also invalid UTF-8
        raise TraceError(f"{path} is not JSON: {error}") from error
    problem = _problem_of(trace)
    if problem:
        raise TraceError(f"{path} is not a trace of a TraceRecorder: {problem}")
    return trace  # type: ignore[no-any-return]


def write(trace: Trace, path: str | PathLike[str]) -> None:
    """Write a trace. Creates its directory, and replaces the file as a whole.

    Raises:
        OSError: The file cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
    try:
        partial.write_text(_text_of(trace), encoding="utf-8")
        os.replace(partial, path)  # noqa: PTH105 - as in its documentation: atomic
    finally:
        partial.unlink(missing_ok=True)


def _text_of(trace: Trace) -> str:
    """JSON with one event per line."""
    events = ",\n".join(json.dumps(event, ensure_ascii=False) for event in trace["traceEvents"])
    rest = json.dumps({key: value for key, value in trace.items() if key != "traceEvents"}, ensure_ascii=False)
    return f'{{"traceEvents": [\n{events}\n],\n{rest[1:]}\n'


def _problem_of(trace: object) -> str:
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        return "there is no list of traceEvents"
    about = trace.get("otherData")
    if not isinstance(about, dict) or about.get("writer") != WRITER:
        return "another program has written it"
    if about.get("format") != FORMAT:
        return f"its format is {about.get('format')!r}, and this release reads format {FORMAT}"
    if not isinstance(about.get("began", 0.0), int | float):
        return f"it began at {about['began']!r}, which is not a time"
    for number, event in enumerate(trace["traceEvents"]):
        if not _is_event(event):
            return f"traceEvents[{number}] is damaged"
    return ""


def _is_event(event: object) -> bool:
    """Whether the event has what `merge` and `timeline` read."""
    if not isinstance(event, dict):
        return False
    numbers = [event.get(key) for key in ("pid", "tid", "ts")]
    texts = [event.get(key) for key in ("ph", "name")]
    if not (_are(int, numbers) and _are(str, texts) and isinstance(event.get("args"), dict)):
        return False
    if event["ph"] in {"M", "e"}:
        return event["ph"] == "M" or _has_id(event)
    if not (_are(str, [event.get("cat")]) and _are(int, [event["args"].get("sequence")])):
        return False
    return {"X": _are(int, [event.get("dur")]), "b": _has_id(event), "i": True}.get(event["ph"], False)


def _has_id(event: Trace) -> bool:
    scope = event.get("id2")
    return isinstance(scope, dict) and _are(str, [scope.get("local"), event.get("cat")])


def _are(kind: type, values: list[Any]) -> bool:
    return all(type(value) is kind for value in values)  # a bool is not a number
