"""What every room uses: checks and texts of values, exceptions, and how public names appear."""

# The layout. Imports point down only.
#
#     checks      arguments of the public functions: types and ranges
#     describe    values, numbers and durations in messages
#     exceptions  their notes, their copies and their texts
#     public      how public names appear: their addresses, and their keyword arguments
