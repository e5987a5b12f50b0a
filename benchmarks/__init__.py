"""Measures what the operator and the UDFs cost, beside what one would write without them.

`python -m benchmarks [--quick] [--json PATH] [operator] [latency] [spark]`, from the top of the repository.
"""

# The layout. Imports point down only.
#
#     __main__                            the command line
#     _overhead  _throughput  _enriching  what is measured: one part each
#     _http  _http_clients  _http_server  HTTP: the part, the clients, and the server's process
#     _loops  _peers                      what the operator is measured against
#     _rounds  _report                    how it is measured and shown
#     _gauge  _latencies                  what the calls are made of
