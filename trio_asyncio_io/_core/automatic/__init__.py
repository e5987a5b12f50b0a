"""The gate `Auto`, which finds the capacity of an operator."""

# The layout. Imports point down only.
#
#     _auto        the gate: begin here
#     _limits      what the limit may be: as far as it has grown, a number or a rate
#     _evidence    what calls show: which were admitted, why others were refused, whether the service is down

from ._auto import Auto

__all__ = ["Auto"]
