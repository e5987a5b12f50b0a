"""Measures the cost of the operator and the UDFs, compared with alternatives.

`python -m benchmarks [--quick] [--json PATH] [--page PATH] [part ...]`, from the top of the repository. Gates in front
of simulated services: `python -m benchmarks resilience`, with the same options.
"""

# The layout. Imports point down only.
#
#     __main__  _command                    the command line
#     resilience/                           limits in front of simulated services
#     _page  _figures  _picture             the report as a page of the docs, with its figures; its words: page.md
#     _prose                                numbers of the report in the other pages
#     instructions  children/               a script of its own: instructions of an element, compared with a commit
#     _first_result                         Spark: time to the first result
#     _requests                             Spark: HTTP requests, compared with aiohttp by hand
#     _options  _overhead                   cost of options in use and of an element; memory of a record
#     _throughput  _window                  share of Little's law
#     _http  _http_clients  _http_server    cost of an HTTP request
#     _enriching  _two_operators            Spark: cost of a row, and operators in a row
#     _year                                 the main job: wall time, and CPU time by process
#     _gain  _by_hand                       Spark: calls with latencies, compared with code by hand
#     _micro_batches                        Spark: streams
#     _peers  _loops  _contenders           alternatives in this process
#     _rounds  _report                      measurement and report
#     _backends  _gauge  _latencies         event loops, counters and latencies of the calls
