"""Durable checkpoints: a snapshot and the consumer's own position, kept together where a kill cannot part them.

Checkpoint         a snapshot, and the position of what has come out
CheckpointStore    what keeps one for each name: the protocol
SQLiteStore        keeps them in a file
CheckpointError    one cannot be kept, or cannot be read back
"""

from .._addresses import publish
from ._checkpoint import Checkpoint, CheckpointError, CheckpointStore
from ._sqlite import SQLiteStore

__all__ = ["Checkpoint", "CheckpointError", "CheckpointStore", "SQLiteStore"]

publish(globals())
