"""The demo: a Spark job that looks up the weather and the aircraft of real flights over HTTP."""

# The layout. Imports point down only.
#
#     __main__                       the job, from top to bottom: begin here
#     _stream                        the same flights as a stream of files
#     _session  _summary  service    Spark and Ctrl-C; what a run prints at its end; the HTTP service
#     _flights  _server              the source data; the HTTP service as a process
