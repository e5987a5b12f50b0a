"""One rate for all tasks of a cluster."""
