"""The protocols of three LLM services: what a request asks for, and how an answer or a refusal looks.

A request names a JSON schema of one object with one array, and its user message is a JSON array of texts. The answer
has one item for each text.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from ._server import Response, json_response

__all__ = ["ANTHROPIC", "BEDROCK", "OPENAI", "Limit", "Prompt", "Protocol", "Usage"]

_OVERLOADED: Final = 529  # has no name in HTTP


class Usage(NamedTuple):
    """The tokens of a call."""

    input: int
    output: int


class Limit(NamedTuple):
    """The state of a limit per minute.

    Args:
        name: "requests" or "tokens".
        per_minute: The limit.
        remaining: What may start now.
        full_after: Seconds until the limit is as after an idle minute.
        wait: Seconds until the request may start, 0 if it may start now.
    """

    name: str
    per_minute: int
    remaining: int
    full_after: float
    wait: float


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a request asks for.

    Args:
        model: The name of the model.
        texts: The rows.
        schema: The JSON schema of the answer.
        tool: The tool that the answer calls, or None: the answer is a text.
        characters: The length of all messages together.
    """

    model: str
    texts: Sequence[str]
    schema: Mapping[str, Any]
    tool: str | None
    characters: int


class Protocol(ABC):
    """The protocol of one service."""

    @abstractmethod
    def prompt(self, path: str, body: Mapping[str, Any]) -> Prompt:
        """What a request asks for.

        Raises:
            KeyError, IndexError, TypeError, ValueError: It is not in the protocol.
        """

    @abstractmethod
    def answer(self, number: int, prompt: Prompt, content: Mapping[str, Any], usage: Usage) -> Mapping[str, Any]:
        """The body of the answer to the request of this number."""

    @abstractmethod
    def headers(self, limits: Sequence[Limit]) -> list[tuple[str, str]]:
        """The headers that report on the limits."""

    @abstractmethod
    def refusal(self, limit: Limit) -> Response:
        """The response to a request beyond a limit, without the headers that report on limits."""

    @abstractmethod
    def overloaded(self) -> Response:
        """The response of a service that has too many requests from everybody."""

    def invalid(self, message: str) -> Response:
        """The response to a request that is not in the protocol."""
        return json_response(HTTPStatus.BAD_REQUEST, {"error": {"type": "invalid_request_error", "message": message}})


class OpenAI(Protocol):
    """`POST /v1/chat/completions` with `response_format`."""

    def prompt(self, path: str, body: Mapping[str, Any]) -> Prompt:  # noqa: ARG002
        """See `Protocol`."""
        messages = [message["content"] for message in body["messages"]]
        schema = body["response_format"]["json_schema"]["schema"]
        return _prompt(body["model"], messages, schema, None)

    def answer(self, number: int, prompt: Prompt, content: Mapping[str, Any], usage: Usage) -> Mapping[str, Any]:
        """See `Protocol`."""
        message = {"role": "assistant", "content": json.dumps(content), "refusal": None}
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 0,
            "model": prompt.model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": usage.input,
                "completion_tokens": usage.output,
                "total_tokens": sum(usage),
            },
        }

    def headers(self, limits: Sequence[Limit]) -> list[tuple[str, str]]:
        """See `Protocol`."""
        return [
            header
            for limit in limits
            for header in (
                (f"x-ratelimit-limit-{limit.name}", str(limit.per_minute)),
                (f"x-ratelimit-remaining-{limit.name}", str(limit.remaining)),
                (f"x-ratelimit-reset-{limit.name}", f"{limit.full_after:.3f}s"),
            )
        ]

    def refusal(self, limit: Limit) -> Response:
        """See `Protocol`."""
        message = (
            f"Rate limit reached on {limit.name} per min: limit {limit.per_minute}. Try again in {limit.wait:.3f}s"
        )
        error = {"message": message, "type": limit.name, "param": None, "code": "rate_limit_exceeded"}
        return json_response(HTTPStatus.TOO_MANY_REQUESTS, {"error": error}, [_retry_after(limit)])

    def overloaded(self) -> Response:
        """See `Protocol`."""
        error = {"message": "The engine is overloaded: try again", "type": "server_error", "code": None, "param": None}
        return json_response(HTTPStatus.SERVICE_UNAVAILABLE, {"error": error})


class Anthropic(Protocol):
    """`POST /v1/messages` with a tool, or with `output_config.format`."""

    def prompt(self, path: str, body: Mapping[str, Any]) -> Prompt:  # noqa: ARG002
        """See `Protocol`."""
        messages = [body.get("system", ""), *(_text_of(message["content"]) for message in body["messages"])]
        if "tools" in body:
            tool = body["tools"][0]
            return _prompt(body["model"], messages, tool["input_schema"], tool["name"])
        return _prompt(body["model"], messages, body["output_config"]["format"]["schema"], None)

    def answer(self, number: int, prompt: Prompt, content: Mapping[str, Any], usage: Usage) -> Mapping[str, Any]:
        """See `Protocol`."""
        block: Mapping[str, Any] = {"type": "text", "text": json.dumps(content)}
        if prompt.tool is not None:
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": prompt.tool, "input": content}
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": prompt.model,
            "content": [block],
            "stop_reason": "end_turn" if prompt.tool is None else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": usage.input, "output_tokens": usage.output},
        }

    def headers(self, limits: Sequence[Limit]) -> list[tuple[str, str]]:
        """See `Protocol`."""
        now = datetime.now(UTC)
        return [
            header
            for limit in limits
            for header in (
                (f"anthropic-ratelimit-{limit.name}-limit", str(limit.per_minute)),
                (f"anthropic-ratelimit-{limit.name}-remaining", str(limit.remaining)),
                (f"anthropic-ratelimit-{limit.name}-reset", f"{now + timedelta(seconds=limit.full_after):%FT%TZ}"),
            )
        ]

    def refusal(self, limit: Limit) -> Response:
        """See `Protocol`."""
        message = f"This request would exceed your rate limit of {limit.per_minute} {limit.name} per minute"
        return self._error(HTTPStatus.TOO_MANY_REQUESTS, "rate_limit_error", message, [_retry_after(limit)])

    def overloaded(self) -> Response:
        """See `Protocol`."""
        return self._error(_OVERLOADED, "overloaded_error", "Overloaded")

    @staticmethod
    def _error(status: int, kind: str, message: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> Response:
        return json_response(status, {"type": "error", "error": {"type": kind, "message": message}}, headers)


class Bedrock(Protocol):
    """`POST /model/{model}/converse` with `toolConfig`. Signatures are not checked."""

    def prompt(self, path: str, body: Mapping[str, Any]) -> Prompt:
        """See `Protocol`."""
        parts = [*body.get("system", ()), *(part for message in body["messages"] for part in message["content"])]
        tool = body["toolConfig"]["tools"][0]["toolSpec"]
        model = path.removeprefix("/model/").removesuffix("/converse")
        return _prompt(model, [part["text"] for part in parts], tool["inputSchema"]["json"], tool["name"])

    def answer(self, number: int, prompt: Prompt, content: Mapping[str, Any], usage: Usage) -> Mapping[str, Any]:
        """See `Protocol`."""
        tool = {"toolUseId": f"tooluse_{number}", "name": prompt.tool, "input": content}
        return {
            "output": {"message": {"role": "assistant", "content": [{"toolUse": tool}]}},
            "stopReason": "tool_use",
            "usage": {"inputTokens": usage.input, "outputTokens": usage.output, "totalTokens": sum(usage)},
            "metrics": {"latencyMs": 0},
        }

    def headers(self, limits: Sequence[Limit]) -> list[tuple[str, str]]:  # noqa: ARG002
        """Bedrock reports no limits."""
        return []

    def refusal(self, limit: Limit) -> Response:
        """See `Protocol`. It has no `retry-after`."""
        message = f"Too many {limit.name}, please wait before trying again."
        return self._error(HTTPStatus.TOO_MANY_REQUESTS, "ThrottlingException", message)

    def overloaded(self) -> Response:
        """See `Protocol`."""
        message = "The service isn't currently available. Try again later."
        return self._error(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailableException", message)

    def invalid(self, message: str) -> Response:
        """See `Protocol`."""
        return self._error(HTTPStatus.BAD_REQUEST, "ValidationException", message)

    @staticmethod
    def _error(status: HTTPStatus, kind: str, message: str) -> Response:
        return json_response(status, {"message": message}, [(b"x-amzn-errortype", kind.encode())])


OPENAI: Final = OpenAI()
ANTHROPIC: Final = Anthropic()
BEDROCK: Final = Bedrock()


def _prompt(model: str, messages: Sequence[str], schema: Mapping[str, Any], tool: str | None) -> Prompt:
    texts = json.loads(messages[-1])
    if not (isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts)):
        raise ValueError("the last message must be a JSON array of texts")
    return Prompt(model, texts, schema, tool, sum(map(len, messages)))


def _text_of(content: str | Sequence[Mapping[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _retry_after(limit: Limit) -> tuple[bytes, bytes]:
    return b"retry-after", b"%d" % math.ceil(limit.wait)
