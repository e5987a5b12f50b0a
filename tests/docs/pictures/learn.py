"""The pictures of docs/learn, by file name."""

from __future__ import annotations

from collections.abc import Callable

from tests.docs.pictures import counters, queues, snapshot_steps, spark, tasks, timelines

__all__ = ["PICTURES"]

PICTURES: dict[str, Callable[[], str]] = {
    "learn/backpressure.svg": counters.backpressure,
    "learn/checkpoint.svg": counters.checkpoint,
    "learn/failures.svg": timelines.failures,
    "migrate/flink-threads.svg": tasks.flink_threads,
    "learn/head-of-line.svg": timelines.head_of_line,
    "learn/life.svg": counters.life,
    "spark/micro-batches.svg": spark.micro_batches,
    "learn/order.svg": timelines.order,
    "learn/queues.svg": queues.queues,
    "learn/queues-steps.html": queues.stepper,
    "learn/retries.svg": timelines.retries,
    "learn/snapshot-steps.html": snapshot_steps.snapshot_steps,
    "learn/snapshots.svg": timelines.snapshots,
    "spark/spark-bridge.svg": spark.spark_bridge,
    "learn/structured.svg": timelines.structured,
    "learn/task-tree.svg": tasks.task_tree,
    "learn/time-limits.svg": timelines.time_limits,
    "learn/watermarks.svg": timelines.watermarks,
    "learn/why-async.svg": timelines.why_async,
}
