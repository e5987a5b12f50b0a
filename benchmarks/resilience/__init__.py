"""Experiments with gates: simulated services on a virtual clock, so that each run has the same numbers."""

# The layout. Imports point down only.
#
#     _command                             the command line: `python -m benchmarks resilience`
#     _page  _plots                        the report as a page of the docs, with its pictures
#     _experiments                         all experiments
#     _rates  _capacities                  limited rates, and services with a knee or a latency
#     _outages  _hedging                   outages, and slow calls
#     _experiment  _counting               an experiment, its criteria, and counts of instants
#     rivals/                              published algorithms, written anew for comparison
#     _run  _services                      the operator in front of a service, on a virtual clock
