"""The demo: a Spark job that looks up the weather and the aircraft of real flights over HTTP."""

# The layout. Imports point down only.
#
#     __main__            the job, from top to bottom: begin here
#     _summary  service   what a run prints at its end; the HTTP service
#     _flights            the source data
