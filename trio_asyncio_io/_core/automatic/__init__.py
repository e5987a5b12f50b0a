"""The gate `Auto`, which finds the capacity of an operator."""

# The layout. Imports point down only.
#
#     _auto        the gate: begin here
#     _limits      what the limit may be: the start, a number, a rate or a plateau
#     _evidence    what calls show: which were admitted, why others were refused, whether the service is down

from ._auto import Auto

__all__ = ["Auto"]
