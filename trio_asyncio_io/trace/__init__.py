"""Records a run as a file for Perfetto, and draws it as a timeline.

python -m trio_asyncio_io.trace run.json                   # draws run.svg
python -m trio_asyncio_io.trace merge traces -o run.json   # one file of those of many tasks
"""

# The layout. Imports point down only.
#
#     __main__             the commands
#     _recorder            TraceRecorder, an observer
#     _merge  _timeline    many traces as one; a trace as a drawing
#     _rows  _svg          trace events as the rows of a drawing; its text, bars and lines
#     _events              the records of a run as trace events
#     _sample  _steps      which records are recorded; the steps of one record
#     _file                traces on disk

from .._addresses import publish
from ._file import TraceError, read
from ._merge import merge
from ._recorder import TraceRecorder
from ._timeline import timeline

__all__ = ["TraceError", "TraceRecorder", "merge", "read", "timeline"]

publish(globals())
