"""Plain data without an event loop: queues, counters, retry arithmetic and snapshots."""

# The layout. Imports point down only.
#
#     observed_ledger                      a ledger that also calls an observer
#     ledger (inventory)                   what one operator holds: the buffer, the outputs, the snapshot
#     invocations (flow  yields  totals  samples)    its jobs and slots, every counter, and where the time goes
#     holders                              which gate has held back a line of calls, and for how long
#     ordered  unordered  keyed (queue)    the order of the output
#     options  retry  retry_after  retry_budget  gate  arrival  per_key
#     snapshot  statistics (histogram)  verdict (explanation  evidence)  dead_letter  observer  notes
#     elements  watermarks  checks  probe  sums  describe
