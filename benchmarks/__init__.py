"""Measures the cost of the operator and the UDFs, compared with alternatives.

`python -m benchmarks [--quick] [--json PATH] [--page PATH] [part ...]`, from the top of the repository. Gates in front
of simulated services: `python -m benchmarks resilience`, with the same options.
"""

# The layout. Imports point down only.
#
#     __main__                              the command lines
#     resilience/                           limits in front of simulated services
#     forecast/                             forecasts beside the runs themselves: a command of its own
#     instructions  children/               instructions of an element, compared with a commit: a command of its own
#     _command                              measures parts, shows their tables and writes files
#     _page  _figures  _picture             the report as a page of the docs, with its figures; its words: page.md
#     _first_result                         Spark: time to the first result
#     _requests                             Spark: HTTP requests, compared with aiohttp by hand
#     _options  _throughput                 cost of options in use, and memory of a record; share of Little's law
#     _overhead                             cost of an element
#     _http  _http_server                   cost of an HTTP request
#     _year                                 the main job: wall time, and CPU time by process
#     _gain  _by_hand                       Spark: calls with latencies, compared with code by hand
#     _micro_batches                        Spark: streams
#     _spark                                Spark: the session, the cost of a row, and operators in a row
#     _contenders                           this operator, loops on bare Trio, and alternatives in this process
#     _rounds  _report                      measurement and report
#     _backends  _timer  _latencies         event loops, and latencies of the calls
