"""The pictures of docs/guide, docs/spark, docs/migrate and docs/design, by file name."""

from __future__ import annotations

from collections.abc import Callable

from pictures import counters, interleavings, queues, snapshot_steps, spark, tasks, timelines

PICTURES: dict[str, Callable[[], str]] = {
    "guide/backpressure.svg": counters.backpressure,
    "guide/checkpoint.svg": counters.checkpoint,
    "guide/failures.svg": timelines.failures,
    "design/interleavings.svg": interleavings.interleavings,
    "migrate/flink-threads.svg": tasks.flink_threads,
    "guide/head-of-line.svg": timelines.head_of_line,
    "guide/life.svg": counters.life,
    "spark/micro-batches.svg": spark.micro_batches,
    "guide/order.svg": timelines.order,
    "guide/queues.svg": queues.queues,
    "guide/queues-steps.html": queues.stepper,
    "guide/retries.svg": timelines.retries,
    "guide/snapshot-steps.html": snapshot_steps.snapshot_steps,
    "guide/snapshots.svg": timelines.snapshots,
    "spark/spark-bridge.svg": spark.spark_bridge,
    "guide/structured.svg": timelines.structured,
    "guide/task-tree.svg": tasks.task_tree,
    "guide/time-limits.svg": timelines.time_limits,
    "guide/trace-run.svg": timelines.trace_run,
    "guide/watermarks.svg": timelines.watermarks,
    "guide/why-async.svg": timelines.why_async,
}
