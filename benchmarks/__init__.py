"""Measures what the operator and the UDFs cost, beside what one would write without them.

`python -m benchmarks [--quick] [--json PATH] [--page PATH] [part ...]`, from the top of the repository.
"""

# The layout. Imports point down only.
#
#     __main__                              the command line: the parts, by name
#     _page  _figures  _picture  _targets   the report as a page of the docs, and what it must show
#     _prose                                its numbers in the other pages
#     _overhead  _processes                 what is measured: an element's cost, here and in other processes,
#     _throughput  _window  _scale          its share of Little's law, and how both grow;
#     _http  _http_clients  _http_server    a request through a client: the part, the clients, the server's process;
#     _enriching  _gain  _start_up          in Spark:
#     _micro_batches                        its batches, its start and its streams
#     peers/  _loops  _contenders           what the operator is measured against, in this process
#     _engines  _child  children/           and in processes of their own: children/ runs there
#     _rounds  _report                      how it is measured and shown
#     _backends  _gauge  _latencies         what the calls are made of
