"""The part of a task that reads and writes Arrow, in Spark's thread of a Python worker."""
