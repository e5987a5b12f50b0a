"""Zone: the time zone of the session that runs a query, which may not be the session that built the column."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext

__all__ = ["Zone"]

# Local properties of a task. They contain the settings that the session of its query has set, but no defaults.
TIME_ZONE = "spark.sql.session.timeZone"
EXECUTION = "spark.sql.execution.id"


@dataclass(frozen=True, slots=True)
class Zone:
    """The time zone of naive datetimes, looked up in each task; pickled.

    Args:
        active: The time zone of the session that was active when the column was built.
        default: The time zone of a session that sets none. None: unknown, as in a remote session.
    """

    active: str
    default: str | None = None

    def of_query(self) -> str:
        """The time zone of the query that this task belongs to.

        That is the session's, or `default` if the session sets none. A task outside of a query, such as one of
        `df.rdd`, does not have the settings of its session, and uses `active`.
        """
        context = TaskContext.get()
        if context is None:
            return self.active
        is_default = self.default is not None and context.getLocalProperty(EXECUTION) is not None
        return context.getLocalProperty(TIME_ZONE) or (self.default if is_default else None) or self.active
