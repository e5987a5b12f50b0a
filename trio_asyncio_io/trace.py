"""Records a run as a file for Perfetto, and draws it as a timeline.

python -m trio_asyncio_io.trace run.json                   # draws run.svg
python -m trio_asyncio_io.trace merge traces -o run.json   # one file of those of many tasks
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path

from ._public import publish
from ._watch.events import merge
from ._watch.files import TraceError, read, write
from ._watch.timeline import timeline
from ._watch.tracing import TraceRecorder

__all__ = ["TraceError", "TraceRecorder", "merge", "read", "timeline"]

publish(globals())

PROGRAM = "python -m trio_asyncio_io.trace"


def _main(arguments: Sequence[str]) -> None:
    """Run one command. Exits with one sentence if a file is not a trace."""
    try:
        if arguments[:1] == ["merge"]:
            print(_merge(_parser_of_merge().parse_args(arguments[1:])))  # noqa: T201 - a command prints
        else:
            print(_draw(_parser_of_draw().parse_args(arguments)))  # noqa: T201
    except (TraceError, OSError) as error:
        sys.exit(f"error: {error}")


def _draw(arguments: Namespace) -> str:
    target = arguments.output or arguments.file.with_suffix(".svg")
    drawing = timeline(read(arguments.file), title=arguments.title, max_rows=arguments.rows)
    target.write_text(drawing, encoding="utf-8")
    return f"wrote {target}"


def _merge(arguments: Namespace) -> str:
    files = [file for path in arguments.paths for file in _files_of(path) if file != arguments.output]
    merged = merge(read(file) for file in files)
    write(merged, arguments.output)
    return f"wrote {arguments.output}: {len(files)} traces, {merged['otherData']['records']:,} records"


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.json"))
    if not files:
        raise TraceError(f"{path} has no trace: there is no file *.json in it")
    return files


def _parser_of_draw() -> ArgumentParser:
    parser = ArgumentParser(PROGRAM, description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a trace of a TraceRecorder, or a merged one")
    parser.add_argument("-o", "--output", type=Path, help="the drawing; default: the file's name with .svg")
    parser.add_argument("--title", default="", help="the heading; default: the names of the operators")
    parser.add_argument("--rows", type=_rows, default=60, help="upper limit of rows per operator; default: 60")
    return parser


def _parser_of_merge() -> ArgumentParser:
    parser = ArgumentParser(f"{PROGRAM} merge", description="Merge the traces of several tasks or runs into one.")
    parser.add_argument("paths", type=Path, nargs="+", help="traces, or directories of them")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the merged trace")
    return parser


def _rows(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


if __name__ == "__main__":
    _main(sys.argv[1:])
