"""Values in SQLite files of ours: the ground of durable checkpoints and of the persistent cache."""

# The layout. Imports point down only.
#
#     sqlite      a file of ours: its format, its version, its threads, and what to do if it is damaged
#     codec       the values in it, as plain text
