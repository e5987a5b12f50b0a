"""Pickled on the driver and used in workers: settings, the user's function, rows, types and extra columns."""

# The layout. Imports point down only.
#
#     extra_columns        the columns behind the results: errors, metadata, metrics
#     settings             how the tasks work: Settings, Enrichment, MemoSettings, CarryOver
#     function  signature  the user's function: its pickle; its parameters
#     row                  one row on its way through the operator
#     arrow_types          Spark types in Arrow, and Arrow values in Python
#     bucket_ids  zone     numbers for Spark's partitions; the time zone of a query
