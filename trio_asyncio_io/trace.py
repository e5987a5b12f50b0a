"""Records a run as a file for Perfetto, and draws it as a timeline."""

from ._values.public import publish
from ._watch.events import merge
from ._watch.files import TraceError, read
from ._watch.timeline import timeline
from ._watch.tracing import TraceRecorder

__all__ = ["TraceError", "TraceRecorder", "merge", "read", "timeline"]

publish(globals())
