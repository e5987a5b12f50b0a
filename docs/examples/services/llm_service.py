"""A stand-in for paid LLM services, to try the recipe without a key. It needs uvicorn.

    python llm_service.py                     listen on http://127.0.0.1:8001
    python llm_service.py --port 0            listen on any free port
    python llm_service.py --help              limits, quota and refusals

It labels texts by counting words, and speaks the protocols of three services. It prints
its URL when it is ready. Stop it with Ctrl-C. Its routes:

    POST /v1/chat/completions      OpenAI, with response_format
    POST /v1/embeddings            OpenAI
    POST /v1/messages              Anthropic, with a tool
    POST /model/{model}/converse   Amazon Bedrock, with toolConfig
    GET /stats                     requests, rows, tokens and dollars
    GET /rows                      calls and dollars of each row
    POST /reset                    forget all requests

The key is "secret". The last message of a request is a JSON array of objects with an
`id` and a `text`, each of which is a row. The schema is an object with one array. Its
items have integers (the id), texts (the label, from the schema's enum) and numbers (the
score).

A token is four bytes of UTF-8. A call takes 1 s plus 2 ms for each output token. It is
paid when it starts, even if the client hangs up. All routes share the limits. A text
with #refused, #filtered, #cut or #malformed gets its whole request such an answer.
"""

import argparse
import asyncio
import json
import math
import os
import re
import socket
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import uvicorn

PORT = 8001
DOLLARS = {"input": 3e-6, "output": 15e-6, "embedded": 2e-8}  # for a token
FAULTS = ("refused", "filtered", "blocked", "cut", "malformed")

LATENCY_SECONDS = 1.0
SECONDS_PER_TOKEN = 0.002
BURST_SECONDS = 6.0  # of a limit, which may start at once

GOOD = {"brilliant", "charming", "clear", "excellent", "funny"}
GOOD |= {"good", "great", "love", "moving", "superb"}
BAD = {"awful", "bad", "boring", "broken", "confusing", "dull"}
BAD |= {"hate", "poor", "slow", "terrible", "weak"}


class Response(NamedTuple):
    """A response with a body of JSON."""

    status: int
    value: Any
    headers: tuple = ()


class Limit(NamedTuple):
    """The state of a limit per minute; `full_after` and `wait` are seconds."""

    name: str  # "requests" or "tokens"
    per_minute: int
    remaining: int
    full_after: float
    wait: float  # until the request may start


class Prompt(NamedTuple):
    """What a request asks for."""

    model: str
    texts: dict  # by id
    read: str  # all that the model reads
    most: float = 0  # tokens of the answer
    schema: Any = None
    tool: str | None = None


class Usage(NamedTuple):
    """The tokens of a call."""

    input: int
    output: int


class OpenAI:
    """`POST /v1/chat/completions` with `response_format`."""

    path = re.compile("/v1/chat/completions")

    def key(self, headers):
        return headers.get("authorization", "").removeprefix("Bearer ")

    def prompt(self, path, body):
        schema = body["response_format"]["json_schema"]["schema"]
        messages = [message["content"] for message in body["messages"]]
        most = body.get("max_completion_tokens", math.inf)
        return prompt_of(body["model"], messages, most, schema)

    def answer(self, prompt, content, usage, fault):
        message = {"role": "assistant", "content": json.dumps(content), "refusal": None}
        if fault == "refused":
            message |= {"content": None, "refusal": "I cannot help with that."}
        elif fault in ("cut", "malformed"):
            message["content"] = message["content"][:-5]
        reason = {"cut": "length", "filtered": "content_filter"}.get(fault, "stop")
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": reason,
        }
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 0,
            "model": prompt.model,
            "choices": [choice],
            "usage": {
                "prompt_tokens": usage.input,
                "completion_tokens": usage.output,
                "total_tokens": sum(usage),
            },
        }

    def headers(self, limits):
        return {
            f"x-ratelimit-{what}-{limit.name}": value
            for limit in limits
            for what, value in (
                ("limit", limit.per_minute),
                ("remaining", limit.remaining),
                ("reset", f"{limit.full_after:.3f}s"),
            )
        }

    def too_many(self, limit):
        message = f"Rate limit reached on {limit.name} per min: {limit.per_minute}"
        error = self.error(429, message, "rate_limit_exceeded")
        return error._replace(headers=(retry_after(limit),))

    def overloaded(self):
        return self.error(503, "The engine is overloaded: try again", None)

    def wrong_key(self):
        return self.error(401, "Incorrect API key provided", "invalid_api_key")

    def no_quota(self):
        message = "You exceeded your current quota, please check your plan and billing"
        return self.error(429, message, "insufficient_quota")

    def blocked(self):
        message = "The prompt triggered the content management policy."
        return self.error(400, message, "content_filter")

    def invalid(self, message):
        return self.error(400, message, None)

    def error(self, status, message, code):
        error = {"message": message, "type": "error", "param": None, "code": code}
        return Response(status, {"error": error})


class Embeddings(OpenAI):
    """`POST /v1/embeddings`, as numbers: the shares of good and of bad words."""

    path = re.compile("/v1/embeddings")

    def prompt(self, path, body):
        texts = body["input"]
        return Prompt(body["model"], dict(enumerate(texts)), "".join(texts))

    def answer(self, prompt, content, usage, fault):
        data = [
            {"object": "embedding", "index": index, "embedding": embedding}
            for index, embedding in enumerate(content)
        ]
        return {
            "object": "list",
            "model": prompt.model,
            "data": data,
            "usage": {"prompt_tokens": usage.input, "total_tokens": sum(usage)},
        }


class Anthropic:
    """`POST /v1/messages` with a tool."""

    path = re.compile("/v1/messages")

    def key(self, headers):  # the client of Anthropic sends the other header
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        return headers.get("x-api-key", bearer)

    def prompt(self, path, body):
        contents = [message["content"] for message in body["messages"]]
        messages = [body.get("system", ""), *map(text_of, contents)]
        (tool,) = body["tools"]
        given = body["max_tokens"], tool["input_schema"], tool["name"]
        return prompt_of(body["model"], messages, *given)

    def answer(self, prompt, content, usage, fault):
        use = {
            "type": "tool_use",
            "id": "toolu_1",
            "name": prompt.tool,
            "input": {} if fault in ("cut", "malformed") else content,
        }
        refused = fault in ("refused", "filtered")
        reason = (
            "refusal" if refused else "max_tokens" if fault == "cut" else "tool_use"
        )
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": prompt.model,
            "content": [] if refused else [use],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": usage.input, "output_tokens": usage.output},
        }

    def headers(self, limits):
        now = datetime.now(UTC)
        return {
            f"anthropic-ratelimit-{limit.name}-{what}": value
            for limit in limits
            for what, value in (
                ("limit", limit.per_minute),
                ("remaining", limit.remaining),
                ("reset", f"{now + timedelta(seconds=limit.full_after):%FT%TZ}"),
            )
        }

    def too_many(self, limit):
        message = (
            f"This request would exceed {limit.per_minute} {limit.name} per minute"
        )
        error = self.error(429, "rate_limit_error", message)
        return error._replace(headers=(retry_after(limit),))

    def overloaded(self):
        return self.error(529, "overloaded_error", "Overloaded")

    def wrong_key(self):
        return self.error(401, "authentication_error", "invalid x-api-key")

    def no_quota(self):
        message = "Your credit balance is too low to access the Anthropic API."
        return self.error(400, "invalid_request_error", message)

    def blocked(self):
        return self.invalid("Output blocked by content filtering policy")

    def invalid(self, message):
        return self.error(400, "invalid_request_error", message)

    def error(self, status, kind, message):
        error = {"type": kind, "message": message}
        return Response(status, {"type": "error", "error": error})


class Bedrock:
    """`POST /model/{model}/converse` with `toolConfig`, and an API key."""

    path = re.compile("/model/([^/]+)/converse")

    def key(self, headers):
        return headers.get("authorization", "").removeprefix("Bearer ")

    def prompt(self, path, body):
        contents = [message["content"] for message in body["messages"]]
        messages = [text_of(parts) for parts in (body.get("system", ()), *contents)]
        tool = body["toolConfig"]["tools"][0]["toolSpec"]
        model = self.path.fullmatch(path)[1]
        most = body.get("inferenceConfig", {}).get("maxTokens", math.inf)
        given = most, tool["inputSchema"]["json"], tool["name"]
        return prompt_of(model, messages, *given)

    def answer(self, prompt, content, usage, fault):
        given = {} if fault in ("cut", "malformed") else content
        use = {"toolUseId": "tooluse_1", "name": prompt.tool, "input": given}
        parts = [{"toolUse": use}]
        if fault == "refused":  # a model refuses in words
            parts = [{"text": "I cannot help with that."}]
        reasons = {"refused": "end_turn", "filtered": "content_filtered"}
        reasons |= {"cut": "max_tokens"}
        return {
            "output": {"message": {"role": "assistant", "content": parts}},
            "stopReason": reasons.get(fault, "tool_use"),
            "usage": {
                "inputTokens": usage.input,
                "outputTokens": usage.output,
                "totalTokens": sum(usage),
            },
            "metrics": {"latencyMs": 0},
        }

    def headers(self, limits):
        return {}

    def too_many(self, limit):
        message = f"Too many {limit.name}, please wait before trying again."
        return self.error(429, "ThrottlingException", message)

    def overloaded(self):
        message = "The service isn't currently available. Try again later."
        return self.error(503, "ServiceUnavailableException", message)

    def wrong_key(self):
        message = "The security token included in the request is invalid."
        return self.error(403, "UnrecognizedClientException", message)

    def no_quota(self):
        message = "Too many tokens per day, please wait before trying again."
        return self.error(429, "ThrottlingException", message)

    def blocked(self):
        return self.invalid("This request has been blocked by our content filters.")

    def invalid(self, message):
        return self.error(400, "ValidationException", message)

    def error(self, status, kind, message):
        return Response(status, {"message": message}, (("x-amzn-errortype", kind),))


PROTOCOLS = (OpenAI(), Embeddings(), Anthropic(), Bedrock())


def prompt_of(model, messages, most, schema, tool=None):
    rows = json.loads(messages[-1])
    if not (rows and isinstance(rows, list)):
        raise ValueError("the last message must be a JSON array")
    texts = {row["id"]: row["text"] for row in rows}
    read = "".join(messages) + json.dumps(schema)
    return Prompt(model, texts, read, most, schema, tool)


def text_of(content):
    parts = content if isinstance(content, list | tuple) else [{"text": content}]
    return "".join(part["text"] for part in parts)


def retry_after(limit):
    return "retry-after", str(math.ceil(limit.wait))


class LLMApp:
    """An ASGI application with the routes of the stand-in.

    Args:
        requests_per_minute, tokens_per_minute: The limits. A tenth of each may start
            at once.
        bytes_per_token: Bytes of UTF-8 for which a token is paid.
        quota: Dollars that the account has.
        overloaded: Each request of this number is refused as by an overloaded service;
            0: none.
        clock: Returns seconds.
    """

    def __init__(
        self,
        *,
        requests_per_minute=300,
        tokens_per_minute=60_000,
        bytes_per_token=4,
        quota=math.inf,
        overloaded=0,
        clock=time.monotonic,
    ):
        self.per_minute = {"requests": requests_per_minute, "tokens": tokens_per_minute}
        self.bytes_per_token = bytes_per_token
        self.quota = quota
        self.overloaded = overloaded
        self.clock = clock
        self.forget()

    def forget(self):
        limits = self.per_minute.items()
        self.buckets = {name: Bucket(limit, self.clock) for name, limit in limits}
        self.counts = Counter()
        self.paid = {}  # by row, the dollars of each call
        self.dollars = 0.0

    async def __call__(self, scope, receive, send):
        method, path = scope["method"], scope["path"]
        protocols = [each for each in PROTOCOLS if each.path.fullmatch(path)]
        if method == "POST" and protocols:
            headers = {
                name.decode(): value.decode() for name, value in scope["headers"]
            }
            response = await self.complete(protocols[0], path, headers, receive)
        elif (method, path) == ("GET", "/stats"):
            response = Response(200, self.stats())
        elif (method, path) == ("GET", "/rows"):
            rows = {
                row: {"calls": len(paid), "dollars": round(sum(paid), 9)}
                for row, paid in self.paid.items()
            }
            response = Response(200, rows)
        elif (method, path) == ("POST", "/reset"):
            self.forget()
            response = Response(200, {})
        else:
            response = Response(404, {"error": f"no such route: {method} {path}"})
        if response is not None:
            await respond(send, response)

    async def complete(self, protocol, path, headers, receive):
        counts = self.counts  # a reset replaces them
        counts["requests"] += 1
        number = counts["requests"]
        body = await body_of(receive)
        if protocol.key(headers) != "secret":
            counts["wrong_key"] += 1
            return protocol.wrong_key()
        try:
            prompt = protocol.prompt(path, json.loads(body))
            content = self.content(prompt)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            counts["invalid"] += 1
            return protocol.invalid(f"{type(error).__name__}: {error}")
        fault = next((each for each in FAULTS if f"#{each}" in prompt.read), None)
        usage = self.usage(prompt, content)
        if usage.output > prompt.most:
            usage, fault = Usage(usage.input, prompt.most), "cut"
        weights = {"requests": 1, "tokens": sum(usage)}
        if refusal := self.refusal(protocol, number, weights):
            return refusal
        for name, bucket in self.buckets.items():
            bucket.take(weights[name])
        self.pay(prompt, usage)
        counts["in_flight"] += 1
        seconds = LATENCY_SECONDS + SECONDS_PER_TOKEN * usage.output
        hung_up = await hangs_up(receive, seconds)
        counts["in_flight"] -= 1
        counts["hung_up" if hung_up else "answered"] += 1
        if hung_up:
            return None
        if fault == "blocked":
            return protocol.blocked()
        answer = protocol.answer(prompt, content, usage, fault)
        return self.with_limits(protocol, Response(200, answer))

    def refusal(self, protocol, number, weights):
        """The response to a request that is not served now; None: it is."""
        if self.dollars >= self.quota:
            self.counts["no_quota"] += 1
            return protocol.no_quota()
        if self.overloaded and number % self.overloaded == 0:
            self.counts["overloaded"] += 1
            return protocol.overloaded()
        slowest = max(self.limits(weights), key=lambda limit: limit.wait)
        if slowest.wait:
            self.counts["throttled"] += 1
            return self.with_limits(protocol, protocol.too_many(slowest))
        return None

    def content(self, prompt):
        """The content of an answer, which follows the schema of the prompt."""
        if prompt.schema is None:
            return [embedding(text) for text in prompt.texts.values()]
        ((name, array),) = prompt.schema["properties"].items()
        properties = array["items"]["properties"]
        return {name: [item(properties, *row) for row in prompt.texts.items()]}

    def usage(self, prompt, content):
        written = "" if prompt.schema is None else json.dumps(content)
        sizes = (len(text.encode()) for text in (prompt.read, written))
        return Usage(*(math.ceil(size / self.bytes_per_token) for size in sizes))

    def limits(self, weights):
        buckets = self.buckets.items()
        return [bucket.state(name, weights.get(name, 0)) for name, bucket in buckets]

    def with_limits(self, protocol, response):
        headers = protocol.headers(self.limits({})).items()
        return response._replace(headers=(*response.headers, *headers))

    def pay(self, prompt, usage):
        kind = "embedded" if prompt.schema is None else "input"
        dollars = DOLLARS[kind] * usage.input + DOLLARS["output"] * usage.output
        self.counts.update(input_tokens=usage.input, output_tokens=usage.output)
        self.dollars += dollars
        for text in prompt.texts.values():
            self.paid.setdefault(text, []).append(dollars / len(prompt.texts))

    def stats(self):
        again = [sum(paid[1:]) for paid in self.paid.values() if len(paid) > 1]
        return {
            **self.counts,
            "rows": len(self.paid),
            "rows_paid_twice": len(again),
            "dollars": round(self.dollars, 9),
            "dollars_twice": round(sum(again), 9),
        }


class Bucket:
    """A limit per minute, as a bucket that is full at the start."""

    def __init__(self, per_minute, clock):
        self.per_minute = per_minute
        self.rate = per_minute / 60
        self.size = max(1.0, BURST_SECONDS * self.rate)
        self.clock = clock
        self.level, self.at = self.size, clock()

    def state(self, name, weight):
        """The limit, for a request of this weight.

        One that is heavier than the bucket starts when it is full.
        """
        now = self.clock()
        self.level = min(self.size, self.level + self.rate * (now - self.at))
        self.at = now
        wait = max(0.0, min(weight, self.size) - self.level) / self.rate
        full_after = (self.size - self.level) / self.rate
        remaining = max(0, math.floor(self.level))
        return Limit(name, self.per_minute, remaining, full_after, wait)

    def take(self, weight):
        self.level -= weight


def rating(text):
    """The label of a text, and its score from -1.0 to 1.0."""
    good, bad = embedding(text)
    score = 0.0 if good == bad else (good - bad) / (good + bad)
    label = "positive" if score > 0 else "negative" if score < 0 else "neutral"
    return label, round(score, 2)


def embedding(text):
    """The numbers of good and bad words."""
    words = re.findall(r"[a-z]+", text.lower())
    return [float(sum(word in kind for word in words)) for kind in (GOOD, BAD)]


def item(properties, row, text):
    """An item of the schema: the id, and a label and a score where it has them."""
    return {name: value(schema, row, text) for name, schema in properties.items()}


def value(schema, row, text):
    label, score = rating(text)
    if schema["type"] == "integer":
        return row
    if schema["type"] == "number":
        return max(score, schema.get("minimum", score))
    labels = schema.get("enum", [label])
    found = [each for each in labels if each == label or each in text.lower()]
    return found[0] if found else labels[-1]


async def body_of(receive):
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body


async def hangs_up(receive, seconds):
    """Wait for these seconds, or until the client hangs up; whether it did."""
    try:
        async with asyncio.timeout(seconds):
            while (await receive())["type"] != "http.disconnect":
                pass
    except TimeoutError:
        return False
    return True


async def respond(send, response):
    body = json.dumps(response.value).encode()
    headers = {"content-type": "application/json", "content-length": len(body)}
    headers |= dict(response.headers)
    pairs = [(name.encode(), str(value).encode()) for name, value in headers.items()]
    start = {"type": "http.response.start", "status": response.status, "headers": pairs}
    await send(start)
    await send({"type": "http.response.body", "body": body})


class Server(uvicorn.Server):
    """Exits immediately on a signal, without waiting for requests in flight."""

    def handle_exit(self, sig, frame):
        os._exit(0)


def main():
    description, _, routes = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(
        description=description,
        epilog=routes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, default, shown in [
        ("port", PORT, "port on 127.0.0.1; 0 means any free port"),
        ("requests-per-minute", 300, "limit, of which a tenth may start at once"),
        ("tokens-per-minute", 60_000, "limit, of which a tenth may start at once"),
        ("bytes-per-token", 4, "bytes of UTF-8 for which a token is paid"),
        ("quota", math.inf, "dollars that the account has"),
        ("overloaded", 0, "refuse each Nth request as overloaded; 0 means none"),
    ]:
        parser.add_argument(
            f"--{name}",
            type=type(default),
            default=default,
            metavar="N",
            help=f"{shown} (default: {default})",
        )
    options = vars(parser.parse_args())
    try:
        place = socket.create_server(("127.0.0.1", options.pop("port")), backlog=2048)
    except OSError as error:
        sys.exit(f"error: {os.strerror(error.errno)}. Choose another port: --port 0")
    config = uvicorn.Config(
        LLMApp(**options),
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_keep_alive=75,
    )
    try:
        print(f"listening on http://127.0.0.1:{place.getsockname()[1]}", flush=True)
        Server(config).run(sockets=[place])
    except KeyboardInterrupt:  # Ctrl-C before the server has installed its handler
        pass


if __name__ == "__main__":
    main()
