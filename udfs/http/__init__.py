"""An httpx client for Trio that stays fast with a hundred requests in flight.

httpx's own pool examines every connection for every request. With a hundred connections, this takes most of the time
of a request. Here idle connections are stored on a stack per origin, and taking or returning one costs the same however
many there are.

`udfs.http.httpx2` has the same client for httpx2. Neither needs PySpark, pandas or the operator.

Errors are httpx's own: `httpx.ConnectError`, `httpx.ReadTimeout`, `httpx.RemoteProtocolError` and so on.
"""

# The layout, in the order in which a request passes through it. Imports point down only.
#
#     httpx2               the same for httpx2, if it is installed
#     _httpx2_limit        the upper limit of its bodies
#     _httpx2_transport    StackTransport for httpx2
#     _client              `client`: an httpx client on a StackTransport
#     _plain_client        PlainClient: plain requests, without httpx's objects
#     _stack_client        StackClient: httpx.AsyncClient with a shorter path
#     _plain_request       PlainRequest: bytes at once, and an httpx.Request where somebody looks at it
#     _authentication      the httpx.Auth of a request
#     _redirects           the request that follows a redirect
#     _mounts              which transport sends the requests to a URL
#     _request_headers     the headers of a request, merged once
#     _url                 URLs that need no parser
#     _proxies             the mounts of proxies
#     _transport           StackTransport: sends one request on a connection of the pool
#     _exchange            Exchanger: one request, one whole response
#     _ssl_context         the SSL context of a transport, made at its first HTTPS request
#     _pool                ConnectionPool: busy and idle connections, and their limits
#     _idle                IdleStacks: idle connections, a stack per origin
#     _complete_response   CompleteResponse: a response that was read, made without httpx's constructor
#     _response            Response: an httpx.Response that decodes its body in bounded steps
#     _response_body       ResponseBody: the bytes of the body, as they arrive
#     _connection          Connection: one request at a time, sent and answered
#     _response_parser     ResponseParser: bytes in, a response out
#     _plain_head          heads of responses that need no parser
#     _response_head       ResponseHead: status line, headers, and how the body ends
#     _request_writer      RequestWriter: one request, checked and written
#     _request_head        the head of a request, as bytes
#     _dial                Dialler: from an origin to a connected stream
#     _tls                 TlsStream: TLS on a Socket
#     _socket              Socket: TCP with few checkpoints
#     _origin              Origin: scheme, host, port and name in TLS
#     _deadlines           Deadlines: closes the connections whose time is up
#     _body_limit          BodyTooLargeError: the upper limit of a body
#     _decoding            content codings
#     _charset             charsets
#     _shortcuts           shortcuts past httpx's constructors, checked at import

from .._extras import needs_extra

with needs_extra(__name__, "http"):
    from ._body_limit import BodyTooLargeError
    from ._client import client
    from ._transport import StackTransport

__all__ = ["BodyTooLargeError", "StackTransport", "client"]

BodyTooLargeError.__module__ = StackTransport.__module__ = client.__module__ = __name__  # the public address
