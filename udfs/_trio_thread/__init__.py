"""Code that runs in the Trio thread of a Python worker. Only `_spark_thread.bridge` starts it."""

# The layout. Imports point down only.
#
#     calls                the user's function, handlers and observer, as the operator takes them
#     gates                the gates of this process
#     room                 how many rows the operator of a task may have
#     runtime              the loop of this process, and the functions that are open in it
#     hang_up              Spark closes the connection
#     task_clock           where the time of a task goes
