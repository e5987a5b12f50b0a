"""The part of a task that reads and writes Arrow, in Spark's thread of a Python worker."""

# The layout. Imports point down only. A batch takes the way conversion, reading, bridge, writing, conversion.
#
#     memo_rows            with a memo: answers rows without a call, or lets one row of each key call
#     recorder             with a memo: writes the answers of calls, in a third thread
#     memo_table           reads and adds the answers of a memo, for `Memo.read` and `Memo.add`
#     micro_batch          with a carry-over: enriches within a budget, and carries unfinished rows over
#     conversion           batches to rows, and finished rows to batches: begin here
#     bridge               rows to the loop's thread, and back
#     reading  writing     columns to rows; results to arrays
#     batches              slices, payloads, and the input of rows that are not written yet
#     converters  misfits  one value to what Arrow stores; values that do not fit, and advice
#     task_log             the line and the file that a task leaves behind
