"""Start `python llm_service.py` first. Needs: pip install openai anthropic"""

import anthropic
import openai
import trio
from paid_llm import SERVICE, OpenAI
from paid_llm_providers import Anthropic

from trio_asyncio_io import ordered_wait


class OpenAIClient(OpenAI):
    async def open(self):
        url = f"{SERVICE}/v1"
        self.client = openai.AsyncOpenAI(base_url=url, api_key="secret", max_retries=0)

    async def send(self, request):
        try:
            answer = await self.client.chat.completions.create(**request)
        except openai.APIStatusError as error:
            self.check_error(error.status_code, error.response.text)
            raise
        return answer.model_dump()

    async def close(self):
        await self.client.close()


class AnthropicClient(Anthropic):
    async def open(self):
        self.client = anthropic.AsyncAnthropic(
            base_url=SERVICE, api_key="secret", max_retries=0
        )

    async def send(self, request):
        try:
            answer = await self.client.messages.create(**request)
        except anthropic.APIStatusError as error:
            self.check_error(error.status_code, error.response.text)
            raise
        return answer.model_dump()

    async def close(self):
        await self.client.close()


async def main():
    texts = ["a moving story", "a dull story", "a long story"]
    for rater in (OpenAIClient(), AnthropicClient()):
        async with ordered_wait(texts, rater, group=10, timeout=60.0) as results:
            print([rating async for rating in results])


if __name__ == "__main__":
    trio.run(main)
