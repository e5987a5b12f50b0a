"""An httpx client for Trio that stays fast with a hundred requests in flight.

httpx's own pool examines every connection for every request. With a hundred connections, this takes most of the time
of a request. Here idle connections are stored on a stack per origin, and taking or returning one costs the same however
many there are.

Errors are httpx's own: `httpx.ConnectError`, `httpx.ReadTimeout`, `httpx.RemoteProtocolError` and so on.
"""

# The layout, in the order in which a request passes through it. Imports point down only.
#
#     _client              `client`: an httpx client on a StackTransport
#     _stack_client        StackClient: httpx.AsyncClient with a shorter path for plain requests
#     _url                 URLs that need no parser
#     _proxies             refuses the proxies of the environment
#     _transport           StackTransport: sends one request on a connection of the pool
#     _ssl_context         the SSL context of a transport, made at its first HTTPS request
#     _pool                ConnectionPool: busy and idle connections, and their limits
#     _idle                IdleStacks: idle connections, a stack per origin
#     _response            Response: an httpx.Response that decodes its body in bounded steps
#     _response_body       ResponseBody: the bytes of the body, as they arrive
#     _connection          Connection: one request at a time, sent and answered
#     _response_parser     ResponseParser: bytes in, a response out
#     _request_writer      RequestWriter: one request, checked and written
#     _request_head        the head of a request, as bytes
#     _dial                Dialler: from an origin to a connected stream
#     _tls                 TlsStream: TLS on a Socket
#     _socket              Socket: TCP with few checkpoints
#     _origin              Origin: scheme, host, port and name in TLS
#     _deadlines           Deadlines: closes the connections whose time is up
#     _decoding            content codings
#     _charset             charsets

from .._extras import needs_extra

with needs_extra(__name__, "http"):
    from ._client import client
    from ._transport import StackTransport

__all__ = ["StackTransport", "client"]

client.__module__ = StackTransport.__module__ = __name__  # the public address
