"""HTTP requests as columns and as SQL functions, without a Python function.

    from udfs.http_columns import http_get, http_request, register_http

    df.select(http_get("url"))
    register_http(spark, capacity=50, rate=20.0)
    spark.sql("select http_get(url).body from pages")

The result for each row is a struct<status: int, headers: map<string, string>, body: string, error: struct<type: string,
message: string, attempts: int, seconds: double>>:

    the service responded       status, headers and body, whatever the status; error is null
    it did not                  error has the reason; the other fields are null
    URL or method is null       the struct itself is null, and no request is sent

A row never fails the job. For anything else (a client certificate, another client, a body that is not text) write an
`AsyncFunction` around `udfs.http.client`.
"""

# The layout. Imports point down only.
#
#     _columns             http_get, http_request and register_http, on the driver
#     _options             HttpOptions: checks the options, and makes the settings of the tasks
#     _arrow               in a worker: requests from Arrow columns, structs from outcomes
#     _call                HttpCall: one request as an async function, with rate, cache and redirects
#     _headers             HeaderSource: headers of all rows, from a function
#     _hosts               HostRule: an entry of `allowed_hosts`
#     _requests            HttpRequest: the request of one row; Hop: as it is sent to one origin
#     _outcome             HttpResponse; the errors that retries and gates must see; HostCapacity: the gate of a host

from .._extras import needs_extra

with needs_extra(__name__, "spark,http"):
    from ._columns import http_get, http_request, register_http

__all__ = ["http_get", "http_request", "register_http"]

http_get.__module__ = http_request.__module__ = register_http.__module__ = __name__  # the public address
