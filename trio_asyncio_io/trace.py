"""Records a run as a file for Perfetto."""

from ._values.public import publish
from ._watch.events import merge
from ._watch.files import TraceError, read
from ._watch.tracing import TraceRecorder

__all__ = ["TraceError", "TraceRecorder", "merge", "read"]

publish(globals())
