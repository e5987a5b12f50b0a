"""The account of an operator: its counts, its durations, where its time went, and the verdict. Plain data."""

# The layout. Imports point down only.
#
#     flow                    where the time goes: the stopwatches that the ledger turns
#     verdict                 what limited the operator
#     sentences               the verdict in words: the reason, and which change would help
#     sums                    the times of operators, and the means and shares that follow from them
#     statistics  samples     the counts, declared once; which records' durations count
#     histogram               durations, as counts of buckets
