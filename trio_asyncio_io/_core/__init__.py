"""Plain data without an event loop: queues, the ledger, retry arithmetic and snapshots."""

# The layout. Imports point down only.
#
#     observation                calls an observer after each step of a ledger
#     scheduler                  which attempt starts now: slots and retries
#     groups  admission          records whose attempts are one call, and lines in front of gates
#     deadlines                  when running calls expire
#     ledger  options            what one operator holds, and every counter; what users give
#     automatic  refusals        a gate that finds the capacity; how long a service has accepted no call
#     observer                   hooks for each step of a record
#     retry                      whether another attempt follows, and when
#     reading                    what an exception says about the service
#     snapshot  dead_letter      what users get
#     gate                       what all gates have in common
#     queue                      the order of the output: begin here
#     elements  parameters       records and watermarks; type parameters with defaults
