import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from tempfile import TemporaryDirectory

import httpx
import httpx2
import trio

from udfs.http import BodyTooLargeError, client
from udfs.http.httpx2 import client as httpx2_client


async def through_a_proxy(proxy):
    async with client(proxy=proxy) as http:  # or trust_env=True
        print((await http.get("http://example.org/planes")).text)


async def to_a_unix_socket(path):
    engine = httpx.AsyncHTTPTransport(uds=path)
    async with client(mounts={"http://engine": engine}) as http:
        print((await http.get("http://engine/planes")).text)


async def without_a_network():
    mock = httpx.MockTransport(lambda request: httpx.Response(404, text="no plane"))
    async with client(transport=mock, base_url="http://mock") as http:
        response = await http.get("/planes")
        print(response.status_code, response.text)


async def with_a_limit(url):
    async with client(base_url=url, max_body_bytes=20) as http:
        try:
            await http.get("/planes/of/all/airlines")
        except BodyTooLargeError as error:
            print(error)


async def refused():
    try:
        client(http2=True)
    except ValueError as error:
        print(error)


async def with_httpx2(url):
    async with httpx2_client(base_url=url) as http:
        response = await http.get("/planes")
        print(type(response) is httpx2.Response, response.text)


class StandIn(BaseHTTPRequestHandler):
    """Answers with the target of the request, as a service or as a proxy."""

    def do_GET(self):
        body = self.path.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


async def examples(url, path):
    await through_a_proxy(url)
    await to_a_unix_socket(path)
    await without_a_network()
    await with_a_limit(url)
    await refused()
    await with_httpx2(url)


def main():
    with (
        TemporaryDirectory() as folder,
        ThreadingHTTPServer(("127.0.0.1", 0), StandIn) as service,
        ThreadingUnixStreamServer(str(Path(folder, "engine")), StandIn) as engine,
    ):
        for server in (service, engine):
            threading.Thread(target=server.serve_forever).start()
        try:
            url = f"http://127.0.0.1:{service.server_port}"
            trio.run(examples, url, engine.server_address)
        finally:
            service.shutdown()
            engine.shutdown()


if __name__ == "__main__":
    main()
