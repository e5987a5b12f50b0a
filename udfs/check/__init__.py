"""Checks whether this machine can run `udfs`: Python, packages, Java, the workers' Python, and a Spark job.

    python -m udfs.check         # all checks, in half a minute
    python -m udfs.check java    # some of them: python, packages, java, worker, spark

The command needs nothing but Python, so it also works before anything else is installed.
"""

# The layout. Imports point down only.
#
#     __main__                     the command
#     _spark  _job                 starts a Spark job in a process of its own; that process
#     _java  _packages  _worker    the checks that start no Spark
#     _finding                     what a check found
