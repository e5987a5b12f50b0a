"""The task: what runs in the thread of a Spark worker that reads and writes Arrow."""
