"""Start `python llm_service.py` first."""

from operator import itemgetter
from typing import Literal

import trio
from paid_llm import OpenAI, reading
from pydantic import BaseModel, Field

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.gates import settle

DOLLARS = 2e-8  # for a token of an embedding


class Topic(BaseModel, extra="forbid", strict=True):
    id: int
    topic: Literal["delivery", "price", "other"]
    certainty: float = Field(ge=0, le=1)


class Classifier(OpenAI):
    item = Topic
    instructions = "Name the topic of each text of the JSON array. Repeat its id."


class Embedder(OpenAI):
    path = "/v1/embeddings"

    async def invoke(self, texts):
        request = {"model": "text-embedding-3-small", "input": texts}
        body = await self.send(request)
        with reading():
            settle(DOLLARS * body["usage"]["total_tokens"], "dollars")
            data = sorted(body["data"], key=itemgetter("index"))
            indexes = [each["index"] for each in data]
            if indexes != list(range(len(texts))):
                raise ValueError(f"embeddings {indexes} for {len(texts)} texts")
            return [each["embedding"] for each in data]


async def main():
    texts = ["The delivery was slow", "A great price, a good film", "It is excellent"]
    for function in (Classifier(), Embedder()):
        async with ordered_wait(texts, function, group=10, timeout=60.0) as results:
            print([result async for result in results])


if __name__ == "__main__":
    trio.run(main)
