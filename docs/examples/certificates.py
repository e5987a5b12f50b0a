import os
import ssl
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import trio
import trustme  # makes the stand-in for the authority of a company

from udfs.http import client


async def without_its_authority(url):
    async with client() as http:
        try:
            await http.get(url)
        except httpx.ConnectError as error:
            print(error)


async def with_its_authority(url, certificate):
    async with client(verify=certificate) as http:
        print((await http.get(url)).text)


async def through_a_proxy(url, certificate, proxy):
    async with client(verify=certificate, proxy=proxy) as http:
        print((await http.get(url)).text)


async def as_the_environment_says(url, certificate, proxy):
    os.environ |= {"SSL_CERT_FILE": certificate, "HTTPS_PROXY": proxy}
    async with client(trust_env=True) as http:
        print((await http.get(url)).text)


# Stand-ins for a service with a certificate of the company, and for its proxy
async def service(stream):
    with suppress(trio.BrokenResourceError):  # the client does not trust it
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfound")
        await stream.receive_some()  # until the client closes the connection


async def tunnel(stream):
    [_, target, *_] = (await stream.receive_some()).decode().split()
    host, port = target.split(":")
    await stream.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
    print("through the proxy:", end=" ")
    async with (
        await trio.open_tcp_stream(host, int(port)) as server,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(pump, stream, server, nursery.cancel_scope)
        nursery.start_soon(pump, server, stream, nursery.cancel_scope)


async def pump(source, sink, scope):
    async for part in source:
        await sink.send_all(part)
    scope.cancel()


async def examples(url, certificate, proxy):
    await without_its_authority(url)
    await with_its_authority(url, certificate)
    await through_a_proxy(url, certificate, proxy)
    await as_the_environment_says(url, certificate, proxy)


async def main():
    os.environ.pop("NO_PROXY", None)  # it would exclude localhost
    company = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    company.issue_cert("localhost").configure_cert(context)
    serve_tls = partial(
        trio.serve_ssl_over_tcp, host="127.0.0.1", https_compatible=True
    )
    serve = partial(trio.serve_tcp, host="127.0.0.1")
    with TemporaryDirectory() as folder:
        certificate = str(Path(folder, "company.pem"))
        company.cert_pem.write_to_path(certificate)
        async with trio.open_nursery() as nursery:
            [tls, *_] = await nursery.start(serve_tls, service, 0, context)
            [proxy, *_] = await nursery.start(serve, tunnel, 0)
            url = f"https://localhost:{port_of(tls.transport_listener)}"
            await examples(url, certificate, f"http://localhost:{port_of(proxy)}")
            nursery.cancel_scope.cancel()


def port_of(listener):
    return listener.socket.getsockname()[1]


if __name__ == "__main__":
    trio.run(main)
