"""The zone: the time zone of the session that runs a query, which need not be the one where its column was made."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext

__all__ = ["Zone"]

# A task gets the settings of its query as local properties: those that its session has set, and no defaults.
TIME_ZONE = "spark.sql.session.timeZone"
EXECUTION = "spark.sql.execution.id"


@dataclass(frozen=True, slots=True)
class Zone:
    """Which time zone a task takes naive datetimes to be in; pickled.

    Args:
        active: The time zone of the session that was active when the column was made.
        default: That of a session that sets none; None if it cannot be known, as in a remote session.
    """

    active: str
    default: str | None = None

    def of_query(self) -> str:
        """The time zone of the query that this task belongs to.

        A session that sets none has the default one. Where a task is of no query, as below `df.rdd`, Spark does not
        say what its session has set: then it is the active one.
        """
        context = TaskContext.get()
        if context is None:
            return self.active
        is_default = self.default is not None and context.getLocalProperty(EXECUTION) is not None
        return context.getLocalProperty(TIME_ZONE) or (self.default if is_default else None) or self.active
