"""Looks at a run: one recorder, and the views that draw what it has recorded."""

# The layout. Imports point down only.
#
#     display              what a notebook shows
#     report  tracing      the two recorders that users create: `report`, and `TraceRecorder`
#     page  timeline       a report as a page; a trace as a drawing
#     charts  events       the charts of a page; the records of a run as trace events, and many traces as one
#     recorder  files      an observer that follows records through their slots; reports and traces on disk
#     run  steps  svg      the numbers of a run; the steps of one record; elements of a drawing
