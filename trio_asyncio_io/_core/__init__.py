"""Plain data without an event loop: queues, counters, retry arithmetic and snapshots."""

# The layout. Imports point down only.
#
#     observation                          calls an observer after each step of a ledger
#     scheduler (admission)                which attempt starts now: slots, retries, lines in front of gates
#     ledger (inventory  flow)             what one operator holds, every counter, and where the time goes
#     retries (retry  retry_after  retry_budget)    whether another attempt follows, and when
#     ordered  unordered  keyed (queue)    the order of the output
#     options  gate  arrival  observer     what users give
#     statistics (histogram  samples)  totals  verdict  snapshot  dead_letter  notes    what users get
#     elements  watermarks  checks  probe  sums  describe
