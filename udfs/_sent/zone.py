"""Zone: the time zone of the session that runs a query, and its names in Spark, Python and Arrow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cache
from typing import cast
from zoneinfo import ZoneInfo

from .._spark_task import SparkTask

# Local properties of a task
TIME_ZONE = "spark.sql.session.timeZone"
EXECUTION = "spark.sql.execution.id"

# The forms of an offset that Spark accepts. One with seconds other than 00 has no name in Arrow.
OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d?)(?::?(\d\d?))?(?::?00)?")


@dataclass(frozen=True, slots=True)
class Zone:
    """The time zone of naive datetimes, looked up in each task; pickled.

    The session that runs the query may not be the one that built the column.

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
        task = SparkTask.current()
        if task is None:
            return self.active
        is_default = self.default is not None and task.local_property(EXECUTION) is not None
        return task.local_property(TIME_ZONE) or (self.default if is_default else None) or self.active


@cache
def portable_zone(zone: str) -> str:
    """The name that Python and Arrow have for a time zone of Spark's: "+02:00" for "+02" and "GMT+2"."""
    if zone in {"Z", "UT"}:
        return "UTC"
    offset = OFFSET.fullmatch(zone)
    return f"{offset[1]}{int(offset[2]):02}:{int(offset[3] or 0):02}" if offset else zone


@cache
def tzinfo_of(zone: str) -> tzinfo:
    """The time zone of a session as Python has it.

    Raises:
        ValueError: Python has no such time zone.
    """
    name = portable_zone(zone)
    try:
        return cast("tzinfo", datetime.strptime(name, "%z").tzinfo) if name[0] in "+-" else ZoneInfo(name)
    except (KeyError, ValueError):  # a missing zone is a KeyError
        raise ValueError(
            f"Python has no time zone {zone!r}, which is the session's: set {TIME_ZONE} to a region such as "
            '"America/Los_Angeles" or an offset such as "+02:00"'
        ) from None
