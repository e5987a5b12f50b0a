"""Durable checkpoints: a snapshot and the consumer's position, stored in one transaction.

Checkpoint         a snapshot and a position
CheckpointStore    the protocol of a store: one durable checkpoint per name
SQLiteStore        a store in a file
CheckpointError    a durable checkpoint cannot be stored, or cannot be loaded
"""

from .._public import publish
from ._checkpoint import Checkpoint, CheckpointError, CheckpointStore
from ._sqlite_store import SQLiteStore

__all__ = ["Checkpoint", "CheckpointError", "CheckpointStore", "SQLiteStore"]

publish(globals())
