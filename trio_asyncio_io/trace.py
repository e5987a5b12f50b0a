"""Records a run as a file for Perfetto."""

from ._values.public import publish
from ._watch.tracing import TraceRecorder

__all__ = ["TraceRecorder"]

publish(globals())
