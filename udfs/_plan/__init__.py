"""Code that runs only on the driver: it builds and watches queries."""

# The layout, from a call of a public function to the query. Imports point down only.
#
#     query                the DataFrame that an operator returns, step by step: begin here
#     job_watch            counts tasks, and describes micro-batches, for `udfs.progress`
#     arguments            the keyword arguments, checked, and the settings of the tasks
#     metrics              what Spark sums up over all rows; `udfs.explain` and `udfs.summary`
#     memo_query           the query of an operator with a memo
#     stateful_query       the query of a carry-over
#     memo                 `udfs.Memo`
#     memo_layout          the columns of a memo's files, and the task of each key
#     limits               a task's part of a cluster's rates and budgets
#     row_plan             an operator, resolved against the columns of one DataFrame
#     worker_python        the Python of Spark's workers
#     schema  session      types and columns; the configuration of a session
