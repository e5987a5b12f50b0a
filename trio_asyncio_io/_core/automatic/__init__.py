"""The gate `Auto`, which finds the capacity of an operator."""

# The layout. Imports point down only.
#
#     _auto                  the gate: the hypotheses, their tests, and one cause for each cut
#     _limits  _evidence     what the limit may be, and what refusals show
#     _calls                 the calls that run, those that were admitted, and their latency
#     _constants             each with its reason

from ._auto import Auto

__all__ = ["Auto"]
