"""Experiments with limits: simulated services on a virtual clock, so that each run has the same numbers."""

# The layout. Imports point down only.
#
#     _command                             the command line: `python -m benchmarks resilience`
#     _page  _plots                        the report as a page of the docs, with its pictures
#     _experiments                         all experiments
#     _automatic                           `capacity="auto"` in front of services of many kinds
#     _rates                               many tasks at one rate
#     _outages                             outages
#     _experiment                          an experiment and its criteria
#     _leases                              a source of tokens
#     _counting                            counts of instants
#     _any_service                         a service with any of the usual limits
#     _run  _services                      the operator in front of a service, on a virtual clock
