"""Experiments with gates: simulated services on a virtual clock, so that each run has the same numbers."""

# The layout. Imports point down only.
#
#     _command                             the command line: `python -m benchmarks resilience`
#     _page  _plots                        the report as a page of the docs, with its pictures
#     _experiments                         all experiments
#     _held_out                            services drawn at random
#     _rates  _limits  _sources            limited rates, limits that change, and leases without their source
#     _counted  _weights                   limits that are hard to follow, and estimates that are wrong
#     _capacities                          services with a knee or a latency
#     _outages                             outages
#     _costs                               gates that have nothing to do
#     _experiment                          an experiment and its criteria
#     _gates  _leases                      the gates of all tasks
#     _counting                            counts of instants
#     _run  _services                      the operator in front of a service, on a virtual clock
