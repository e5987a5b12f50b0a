"""Code that runs in the Trio thread of a Python worker. Only `_spark_thread.bridge` starts it."""
