import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import trio
from openai import AsyncOpenAI

from trio_asyncio_io import AsyncFunction, ExponentialBackoff, ordered_wait, transient
from udfs.http.httpx2 import client


class Embeddings(AsyncFunction):
    def __init__(self, url):
        self.url = url

    async def open(self):
        self.service = AsyncOpenAI(
            base_url=self.url,
            api_key="secret",
            http_client=client(),
            max_retries=0,  # the operator retries
        )

    async def invoke(self, texts):  # once per group
        response = await self.service.embeddings.create(
            model="text-embedding-3-small", input=texts
        )
        return [each.embedding for each in response.data]

    async def close(self):
        await self.service.close()


async def embed(url, texts):
    retry = ExponentialBackoff(3, 0.1, 5.0, retry_on=transient)
    async with ordered_wait(
        texts, Embeddings(url), group=3, timeout=30.0, retry=retry
    ) as results:
        print([embedding async for embedding in results])
    print(results.statistics().groups, "calls")


class StandIn(BaseHTTPRequestHandler):
    """Answers as the service does, the first time with "too many requests"."""

    protocol_version = "HTTP/1.1"
    is_busy = True

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if StandIn.is_busy:
            StandIn.is_busy = False
            self.respond(429, {"error": {"message": "slow down"}}, ("Retry-After", "1"))
        else:
            data = [
                {"object": "embedding", "index": index, "embedding": [len(text)]}
                for index, text in enumerate(request["input"])
            ]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            model = request["model"]
            self.respond(
                200, {"object": "list", "data": data, "model": model, "usage": usage}
            )

    def respond(self, status, content, *headers):
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in (
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            *headers,
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    with ThreadingHTTPServer(("127.0.0.1", 0), StandIn) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        try:
            trio.run(embed, url, ["a", "bb", "ccc", "dddd"])
        finally:
            server.shutdown()


if __name__ == "__main__":
    main()
