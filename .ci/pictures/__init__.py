"""Draws the pictures of the documentation, from runs of the scripts in docs/examples on a virtual clock."""

# The layout. Imports point down only.
#
#     learn  tutorial      the pictures, by file name
#     spark                what the operator does in Spark
#     timelines            those of runs that a TraceRecorder recorded
#     lanes  counters      those with rows, and with numbers over time, of our own
#     queues               the queues, step by step
#     snapshot_steps       a snapshot, step by step
#     tasks                our tasks, and Flink's threads
#     killed_job           a job that is killed
#     runs                 the scripts, and runs of them
#     stepper              a page to step through
#     drawing              a trace as a timeline: a row of bars for each record
#     figure  style        the parts of a picture; its colors
