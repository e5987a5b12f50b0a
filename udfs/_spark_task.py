"""Spark task: the task that runs in the present thread. No other module uses Spark's `TaskContext`.

Spark 3.5 to 4.3 run one task after another in a worker process. A later Spark may run several at once, each in a thread
of its own, so a task is looked up only in its thread, and whatever the tasks of a process share is safe for that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark import TaskContext

# A local property of a task of a streaming query
BATCH = "streaming.sql.batchId"


@dataclass(frozen=True, slots=True)
class SparkTask:
    """A task, as Spark numbers it.

    Attributes:
        stage: The number of its stage, which all tasks of the stage have.
        partition: The number of its partition, from 0.
        attempt: 0, and 1 more each time that Spark repeats the task.
        local_property: Returns the value of a local property, or None. These contain the settings that the session of
            the query has set, but no defaults.
    """

    stage: int
    partition: int
    attempt: int
    local_property: Callable[[str], str | None]

    @classmethod
    def current(cls) -> SparkTask | None:
        """The task that runs in this thread, which must be Spark's; None outside a task, as on the driver."""
        context = TaskContext.get()
        if context is None:
            return None
        return cls(context.stageId(), context.partitionId(), context.attemptNumber(), context.getLocalProperty)

    def __str__(self) -> str:
        """Its numbers, such as "stage 3, partition 0, attempt 0"."""
        batch = self.local_property(BATCH)
        micro_batch = "" if batch is None else f"micro-batch {batch}, "
        return f"{micro_batch}stage {self.stage}, partition {self.partition}, attempt {self.attempt}"


def current_partition() -> int:
    """The number of the partition of the task that runs in this thread; 0 outside a task, as on the driver."""
    task = SparkTask.current()
    return 0 if task is None else task.partition
