"""Experiments with limits: simulated services on a virtual clock, so that each run has the same numbers.

`python -m benchmarks resilience`
"""

# The layout. Imports point down only.
#
#     _page                    all experiments, and the report as a page of the docs, with its pictures
#     _automatic               `capacity="auto"` in front of services of many kinds
#     _rates                   many tasks at one rate
#     _outages                 outages
#     _experiment              an experiment and its criteria
#     _leases                  a source of tokens
#     _counting                counts of instants
#     _run  _services          the operator in front of a service, on a virtual clock
