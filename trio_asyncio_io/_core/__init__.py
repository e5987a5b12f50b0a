"""Plain data without an event loop: queues, counters, retry arithmetic and snapshots."""

# The layout. Imports point down only.
#
#     observed_ledger                      a ledger that also calls an observer
#     ledger (inventory  flow  yields  totals  samples)    every counter, both limits and the snapshot of one operator
#     ordered  unordered  keyed (queue)    the order of the output
#     options  retry  retry_after  retry_budget  gate  arrival
#     snapshot  statistics (histogram)  verdict (explanation  evidence)  dead_letter (portable)  observer  notes
#     elements  watermarks  checks  probe  describe
