"""Start `python llm_service.py` first."""

import trio
from paid_llm import (
    ContentFilterError,
    OpenAI,
    Rater,
    RefusalError,
    TruncatedError,
    schema_of,
)

from trio_asyncio_io import ordered_wait


class Anthropic(Rater):
    path = "/v1/messages"
    no_model = "not_found_error"
    no_quota = "credit balance is too low"  # in a 400

    def headers(self, key):
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def request(self, message, longest):
        return {
            "model": "claude-haiku-4-5",
            "max_tokens": longest,
            "system": self.instructions,
            "messages": [{"role": "user", "content": message}],
            "tools": [{"name": "answer", "input_schema": schema_of(self.item)}],
            "tool_choice": {"type": "tool", "name": "answer"},
        }

    def usage(self, body):
        return body["usage"]["input_tokens"], body["usage"]["output_tokens"]

    def content(self, body):
        if body["stop_reason"] == "refusal":
            raise RefusalError("the model refuses to answer")
        if body["stop_reason"] == "max_tokens":
            raise TruncatedError(f"the answer has {body['usage']}")
        uses = [part for part in body["content"] if part["type"] == "tool_use"]
        return uses[0]["input"] if uses else None


class Bedrock(Rater):
    path = "/model/eu.amazon.nova-lite-v1%3A0/converse"
    no_model = "model identifier is invalid"  # in a 400
    no_quota = "tokens per day"  # in a 429

    def headers(self, key):  # a Bedrock API key
        return {"authorization": f"Bearer {key}"}

    def request(self, message, longest):
        schema = {"json": schema_of(self.item)}
        return {
            "system": [{"text": self.instructions}],
            "messages": [{"role": "user", "content": [{"text": message}]}],
            "inferenceConfig": {"maxTokens": longest},
            "toolConfig": {
                "tools": [{"toolSpec": {"name": "answer", "inputSchema": schema}}],
                "toolChoice": {"tool": {"name": "answer"}},
            },
        }

    def usage(self, body):
        return body["usage"]["inputTokens"], body["usage"]["outputTokens"]

    def content(self, body):
        if body["stopReason"] in {"content_filtered", "guardrail_intervened"}:
            raise ContentFilterError(f"the service stopped: {body['stopReason']}")
        if body["stopReason"] == "max_tokens":
            raise TruncatedError(f"the answer has {body['usage']}")
        parts = body["output"]["message"]["content"]
        uses = [part["toolUse"] for part in parts if "toolUse" in part]
        if not uses:
            raise RefusalError(parts[0]["text"] if parts else "the answer is empty")
        return uses[0]["input"]


async def main():
    texts = ["a moving story", "a dull story", "eine lange Geschichte"]
    for rater in (OpenAI(), Anthropic(), Bedrock()):
        async with ordered_wait(texts, rater, group=10, timeout=60.0) as results:
            print(type(rater).__name__, [rating async for rating in results])


if __name__ == "__main__":
    trio.run(main)
