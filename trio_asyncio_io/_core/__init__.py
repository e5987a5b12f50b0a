"""Plain data without an event loop: queues, counters, retry arithmetic and snapshots."""

# The layout. Imports point down only.
#
#     observation                    calls an observer after each step of a ledger
#     scheduler                      which attempt starts now: slots and retries
#     groups (admission)             records whose attempts are one call, and lines in front of gates
#     ledger                         what one operator holds, and every counter
#     retry                          whether another attempt follows, and when
#     options  gate  observer        what users give
#     automatic (refusals)           a gate that finds the capacity
#     snapshot  dead_letter          what users get
#     queue                          the order of the output: begin here
#     elements  parameters     what users give and get: elements, watermarks, and types with defaults
