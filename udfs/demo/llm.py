"""Serve a stand-in for paid LLM services over HTTP, for the recipe in the documentation.

    python -m udfs.demo.llm               listen on http://127.0.0.1:8001
    python -m udfs.demo.llm --port 0      listen on any free port

It rates the sentiment of texts by counting words, and speaks the protocols of three services. The service prints its
URL when it is ready. Stop it with Ctrl-C. Its routes:

    POST /v1/chat/completions      OpenAI, with response_format
    POST /v1/messages              Anthropic, with a tool or output_config
    POST /model/{model}/converse   Amazon Bedrock, with toolConfig
    GET /stats                     the number of requests, by result; rows, tokens and dollars; rows paid twice
    GET /rows                      calls and dollars of each row
    POST /reset                    forget all requests

The last message of a request is a JSON array of texts, each of which is a row. The schema is an object with one array,
whose items have texts (the label) and numbers (the score). A token is four characters, a call takes 1 s plus 2 ms
for each output token, and is paid when it starts, even if the client hangs up. All three routes share the limits.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from ._llm_protocols import ANTHROPIC, BEDROCK, OPENAI, Limit, Prompt, Protocol, Usage
from ._server import Receive, Response, Send, encoded, hangs_up, json_response, respond, serve, service_parser

__all__ = ["LLMApp", "main", "price", "rating"]

PORT: Final = 8001
REQUESTS_PER_MINUTE: Final = 300
TOKENS_PER_MINUTE: Final = 60_000

DOLLARS_PER_INPUT_TOKEN: Final = 3e-6
DOLLARS_PER_OUTPUT_TOKEN: Final = 15e-6

_CHARACTERS_PER_TOKEN: Final = 4
_LATENCY_SECONDS: Final = 1.0
_SECONDS_PER_TOKEN: Final = 0.002
_BURST_SECONDS: Final = 6.0  # of a limit, which may start at once
_DIGITS: Final = 9  # of dollars

_GOOD: Final = {"brilliant", "charming", "clear", "excellent", "funny", "good", "great", "love", "moving", "superb"}
_BAD: Final = {"awful", "bad", "boring", "broken", "confusing", "dull", "hate", "poor", "slow", "terrible", "weak"}


class LLMApp:
    """An ASGI application with the routes of the stand-in.

    Args:
        requests_per_minute, tokens_per_minute: The limits. A tenth of each may start at once.
        overloaded: Each request of this number is refused as by an overloaded service; 0: none.
        clock: Returns seconds.
    """

    def __init__(
        self,
        *,
        requests_per_minute: int = REQUESTS_PER_MINUTE,
        tokens_per_minute: int = TOKENS_PER_MINUTE,
        overloaded: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_minute = {"requests": requests_per_minute, "tokens": tokens_per_minute}
        self._overloaded = overloaded
        self._clock = clock
        self._forget()

    def _forget(self) -> None:
        self._buckets = {name: _Bucket(limit, self._clock) for name, limit in self._per_minute.items()}
        self._counts: Counter[str] = Counter()
        self._paid: dict[str, list[float]] = {}  # by row, the dollars of each call

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Respond to one request."""
        method, path = scope["method"], scope["path"]
        protocol = _protocol_of(path) if method == "POST" else None
        response: Response | None
        if protocol is not None:
            response = await self._complete(protocol, path, receive)
        elif (method, path) == ("GET", "/stats"):
            response = json_response(HTTPStatus.OK, self._stats())
        elif (method, path) == ("GET", "/rows"):
            rows = {row: {"calls": len(paid), "dollars": round(sum(paid), _DIGITS)} for row, paid in self._paid.items()}
            response = json_response(HTTPStatus.OK, rows)
        elif (method, path) == ("POST", "/reset"):
            self._forget()
            response = json_response(HTTPStatus.OK, {})
        else:
            response = json_response(HTTPStatus.NOT_FOUND, {"error": f"no such route: {method} {path}"})
        if response is not None:
            await respond(send, response)

    async def _complete(self, protocol: Protocol, path: str, receive: Receive) -> Response | None:
        counts = self._counts  # a reset replaces them
        counts["requests"] += 1
        number = counts["requests"]
        body = await _body_of(receive)
        try:
            prompt = protocol.prompt(path, json.loads(body))
            content = _filled(prompt)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            counts["invalid"] += 1
            return protocol.invalid(f"{type(error).__name__}: {error}")
        usage = _usage_of(prompt, content)
        if self._overloaded and number % self._overloaded == 0:
            counts["overloaded"] += 1
            return protocol.overloaded()
        weights = {"requests": 1, "tokens": sum(usage)}
        slowest = max(self._limits(weights), key=lambda limit: limit.wait)
        if slowest.wait:
            counts["throttled"] += 1
            return self._with_limits(protocol, protocol.refusal(slowest))
        for name, bucket in self._buckets.items():
            bucket.take(weights[name])
        self._pay(prompt, usage)
        counts["in_flight"] += 1
        hung_up = await hangs_up(receive, _LATENCY_SECONDS + _SECONDS_PER_TOKEN * usage.output)
        counts["in_flight"] -= 1
        counts["hung_up" if hung_up else "answered"] += 1
        if hung_up:
            return None
        return self._with_limits(
            protocol, json_response(HTTPStatus.OK, protocol.answer(number, prompt, content, usage))
        )

    def _limits(self, weights: Mapping[str, int]) -> list[Limit]:
        return [bucket.state(name, weights.get(name, 0)) for name, bucket in self._buckets.items()]

    def _with_limits(self, protocol: Protocol, response: Response) -> Response:
        headers = [(name.encode(), value.encode()) for name, value in protocol.headers(self._limits({}))]
        return response._replace(headers=[*response.headers, *headers])

    def _pay(self, prompt: Prompt, usage: Usage) -> None:
        dollars = price(*usage)
        self._counts.update(input_tokens=usage.input, output_tokens=usage.output)
        for text in prompt.texts:
            self._paid.setdefault(text, []).append(dollars / len(prompt.texts))

    def _stats(self) -> Mapping[str, float]:
        again = [sum(paid[1:]) for paid in self._paid.values() if len(paid) > 1]
        dollars = sum(map(sum, self._paid.values()))
        rows = {"rows": len(self._paid), "rows_paid_twice": len(again)}
        return {**self._counts, **rows, "dollars": round(dollars, _DIGITS), "dollars_twice": round(sum(again), _DIGITS)}


class _Bucket:
    """A limit per minute, as a bucket that is full at the start.

    Args:
        per_minute: The limit.
        clock: Returns seconds.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._rate = per_minute / 60
        self._size = max(1.0, _BURST_SECONDS * self._rate)
        self._clock = clock
        self._level, self._at = self._size, clock()

    def state(self, name: str, weight: float) -> Limit:
        """The limit, for a request of this weight. One that is heavier than the bucket starts when it is full."""
        now = self._clock()
        self._level, self._at = min(self._size, self._level + self._rate * (now - self._at)), now
        wait = max(0.0, min(weight, self._size) - self._level) / self._rate
        full_after = (self._size - self._level) / self._rate
        return Limit(name, self._per_minute, max(0, math.floor(self._level)), full_after, wait)

    def take(self, weight: float) -> None:
        """A request starts."""
        self._level -= weight


def rating(text: str) -> tuple[str, float]:
    """The label of a text, and its score from -1.0 to 1.0: the difference of good and bad words, by their sum."""
    words = re.findall(r"[a-z]+", text.lower())
    good, bad = sum(word in _GOOD for word in words), sum(word in _BAD for word in words)
    score = 0.0 if good == bad else (good - bad) / (good + bad)
    return "positive" if score > 0 else "negative" if score < 0 else "neutral", round(score, 2)


def price(input_tokens: int, output_tokens: int) -> float:
    """The dollars of a call."""
    return DOLLARS_PER_INPUT_TOKEN * input_tokens + DOLLARS_PER_OUTPUT_TOKEN * output_tokens


def _protocol_of(path: str) -> Protocol | None:
    if path == "/v1/chat/completions":
        return OPENAI
    if path == "/v1/messages":
        return ANTHROPIC
    return BEDROCK if re.fullmatch(r"/model/[^/]+/converse", path) else None


def _filled(prompt: Prompt) -> Mapping[str, Any]:
    """The content of an answer, which follows the schema of the prompt."""
    ((name, array),) = prompt.schema["properties"].items()
    properties = array["items"]["properties"]
    return {name: [_item(properties, *rating(text)) for text in prompt.texts]}


def _item(properties: Mapping[str, Mapping[str, Any]], label: str, score: float) -> Mapping[str, Any]:
    values: Mapping[str, Any] = {"string": label, "number": score}
    return {name: values[schema["type"]] for name, schema in properties.items()}


def _usage_of(prompt: Prompt, content: Mapping[str, Any]) -> Usage:
    asked = prompt.characters + len(json.dumps(prompt.schema))
    return Usage(math.ceil(asked / _CHARACTERS_PER_TOKEN), math.ceil(len(encoded(content)) / _CHARACTERS_PER_TOKEN))


async def _body_of(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body", False):
            return body


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the process is stopped, as `serve` does.

    Args:
        arguments: The command line; None: `sys.argv`.

    Raises:
        SystemExit: The port is in use, or an argument is invalid.
    """
    options = _parser().parse_args(arguments)
    app = LLMApp(
        requests_per_minute=options.requests_per_minute,
        tokens_per_minute=options.tokens_per_minute,
        overloaded=options.overloaded,
    )
    serve(app, options)


def _parser() -> argparse.ArgumentParser:
    parser = service_parser("udfs.demo.llm", __doc__, PORT)
    for name, default, shown in [
        ("--requests-per-minute", REQUESTS_PER_MINUTE, "limit, of which a tenth may start at once"),
        ("--tokens-per-minute", TOKENS_PER_MINUTE, "limit, of which a tenth may start at once"),
        ("--overloaded", 0, "refuse each Nth request as overloaded: 503, or 529 of Anthropic; 0 means none"),
    ]:
        parser.add_argument(name, type=int, default=default, metavar="N", help=f"{shown} (default: {default})")
    return parser


if __name__ == "__main__":
    main()
