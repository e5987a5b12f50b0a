"""Streaming queries with a state, on machines of any speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.errors import StreamingQueryException

__all__ = ["PatientQuery"]

# Spark gives the worker of its state store ten seconds to start, which is not enough on a busy machine
TOO_SLOW_FOR_SPARK = "failed to connect back"


class PatientQuery:
    """A streaming query that is started again when Spark did not wait for the worker of its state store.

    Args:
        start: Starts the query and returns it. Its checkpoint says where it continues.

    Attributes:
        query: The query that was started last.
    """

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self.query = start()

    def has_ended(self, seconds: float) -> bool:
        """Wait for this long; whether the query has ended. Raises the query's own exception."""
        try:
            return bool(self.query.awaitTermination(seconds))
        except StreamingQueryException as error:
            if TOO_SLOW_FOR_SPARK not in str(error):
                raise
            self.query = self._start()
            return False
