"""An httpx client for Trio that stays fast with a hundred requests in flight.

httpx's own pool examines every connection for every request. Here idle connections are stored on a stack per origin,
and taking or returning one costs the same however many there are.

`udfs.http.httpx2` has the same client for httpx2. Neither needs PySpark, pandas or the operator.

Errors are httpx's own: `httpx.ConnectError`, `httpx.ReadTimeout`, `httpx.RemoteProtocolError` and so on.
"""

# The layout, in the order in which a request passes through it. Imports point down only.
#
#     httpx2               the same for httpx2, if it is installed: client and transport
#     _client              `client`: a FastClient on a StackTransport; the options of both clients; proxies
#     _fast_client         FastClient: httpx.AsyncClient with a shorter way for the usual request
#     _transport           StackTransport: sends one request on a connection of the pool; BoundedTransport
#     _response            BoundedResponse: an httpx.Response that decodes its body in bounded steps
#     _pool                ConnectionPool: sends a request on a busy or idle connection, within the limits
#     _connection          Connection: one request at a time, sent and answered
#     _response_parser     ResponseParser: bytes in, a response out
#     _request             RequestWriter: one request, checked and written
#     _dial                Dialler: from an origin to a connected stream; which addresses are allowed
#     _tls                 the SSL context; TlsStream: TLS on a Socket
#     _socket              Socket: TCP with few checkpoints
#     _url                 Origin: scheme, host, port and name in TLS; PlainURL: parsed by httpx only when it must be
#     _decoding            content codings, the limit of a body, and charsets

from .._extras import needs_extra

with needs_extra(__name__, "http"):
    from ._client import client
    from ._decoding import BodyTooLargeError
    from ._dial import HostRefusedError
    from ._transport import StackTransport

__all__ = ["BodyTooLargeError", "HostRefusedError", "StackTransport", "client"]

for _public in (BodyTooLargeError, HostRefusedError, StackTransport, client):
    _public.__module__ = __name__  # the public address
