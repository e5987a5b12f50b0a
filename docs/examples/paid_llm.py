"""Needs the service: python -m udfs.demo.llm"""

import json
import os
import sys

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from trio_asyncio_io import transient
from trio_asyncio_io.gates import settle
from udfs import (
    AsyncFunction,
    ClusterBudget,
    ClusterRate,
    ExponentialBackoff,
    explain,
    rehearse,
    unordered_wait,
)
from udfs.http import client

SERVICE = "http://127.0.0.1:8001"  # the stand-in
REQUESTS, TOKENS = 300, 60_000  # per minute: the limits of your account
INPUT, OUTPUT = 3e-6, 15e-6  # dollars for a token

GROUP = 10  # texts in a request
LONGEST = 20  # tokens of a rating
INSTRUCTIONS = "Rate the sentiment of each text of the JSON array, in its order."
SCHEMA = {
    "type": "object",
    "properties": {
        "ratings": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "label": {
                        "type": "string",
                        "enum": ["positive", "neutral", "negative"],
                    },
                    "score": {"type": "number"},
                },
                "required": ["label", "score"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["ratings"],
    "additionalProperties": False,
}


class Rater(AsyncFunction):
    async def open(self):  # once per Python worker process
        headers = self.headers(os.environ.get("LLM_API_KEY", "secret"))
        self.http = client(base_url=SERVICE, headers=headers, timeout=60.0)

    async def invoke(self, texts):  # once per attempt of a group
        ratings, read, written = self.answer(await self.send(self.request(texts)))
        settle(read + written, "tokens")
        settle(INPUT * read + OUTPUT * written, "dollars")
        if len(ratings) != len(texts):
            raise ValueError(f"{len(ratings)} ratings for {len(texts)} texts")
        return [(rating["label"], rating["score"]) for rating in ratings]

    async def send(self, request):
        response = await self.http.post(self.path, json=request)
        if response.is_error:
            settle(0.0)  # a refused request costs nothing
        return response.raise_for_status().json()

    async def close(self):
        await self.http.aclose()


class OpenAI(Rater):
    path = "/v1/chat/completions"

    def headers(self, key):
        return {"authorization": f"Bearer {key}"}

    def request(self, texts):
        schema = {"name": "ratings", "strict": True, "schema": SCHEMA}
        return {
            "model": "gpt-4.1-mini",
            "max_completion_tokens": LONGEST * len(texts),
            "messages": [
                {"role": "system", "content": INSTRUCTIONS},
                {"role": "user", "content": json.dumps(texts)},
            ],
            "response_format": {"type": "json_schema", "json_schema": schema},
        }

    def answer(self, body):
        content = json.loads(body["choices"][0]["message"]["content"])
        usage = body["usage"]
        return content["ratings"], usage["prompt_tokens"], usage["completion_tokens"]


class Anthropic(Rater):
    path = "/v1/messages"

    def headers(self, key):
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def request(self, texts):
        return {
            "model": "claude-haiku-4-5",
            "max_tokens": LONGEST * len(texts),
            "system": INSTRUCTIONS,
            "messages": [{"role": "user", "content": json.dumps(texts)}],
            "tools": [{"name": "rate", "input_schema": SCHEMA}],
            "tool_choice": {"type": "tool", "name": "rate"},
        }

    def answer(self, body):
        (tool,) = [part for part in body["content"] if part["type"] == "tool_use"]
        usage = body["usage"]
        return tool["input"]["ratings"], usage["input_tokens"], usage["output_tokens"]


class Bedrock(Rater):
    path = "/model/eu.amazon.nova-lite-v1%3A0/converse"

    def headers(self, key):  # a Bedrock API key
        return {"authorization": f"Bearer {key}"}

    def request(self, texts):
        tool = {"name": "rate", "inputSchema": {"json": SCHEMA}}
        return {
            "system": [{"text": INSTRUCTIONS}],
            "messages": [{"role": "user", "content": [{"text": json.dumps(texts)}]}],
            "inferenceConfig": {"maxTokens": LONGEST * len(texts)},
            "toolConfig": {
                "tools": [{"toolSpec": tool}],
                "toolChoice": {"tool": {"name": "rate"}},
            },
        }

    def answer(self, body):
        parts = body["output"]["message"]["content"]
        (tool,) = [part["toolUse"] for part in parts if "toolUse" in part]
        usage = body["usage"]
        return tool["input"]["ratings"], usage["inputTokens"], usage["outputTokens"]


def input_tokens(text):  # at most: the text, and a tenth of instructions and schema
    return (len(INSTRUCTIONS) + len(json.dumps(SCHEMA))) / 3 / GROUP + len(text) / 3


def tokens(text):
    return input_tokens(text) + LONGEST


def dollars(text):
    return INPUT * input_tokens(text) + OUTPUT * LONGEST


RATER = OpenAI()  # or Anthropic(), Bedrock()
RATING = "label string, score double"


def options(amount):
    return {
        "inputs": ["text"],
        "group": GROUP,
        "timeout": 120.0,  # seconds for a request, its retries and their backoffs
        "retry": ExponentialBackoff(8, initial=1.0, maximum=30.0, retry_on=transient),
        "cluster_rate": [
            REQUESTS / 60,
            ClusterRate(TOKENS / 60, weight=tokens, name="tokens"),
        ],
        "cluster_budget": ClusterBudget(  # for all runs together
            amount, weight=dollars, name="dollars", path="reviews.budget"
        ),
        "memo": f"ratings-{type(RATER).__name__}",
    }


def forecast(reviews):
    calls = {"sample": 20, "capacity": [1, 2, 5], "mode": "unordered"}
    print(rehearse(reviews, RATER, RATING, **calls, **options(1.00)))


def rate(reviews, amount):
    seen = Observation()
    rated = unordered_wait(
        reviews,
        RATER,
        RATING,
        capacity=5,  # requests at once, in each task
        on_error="column",
        metadata="how",
        metrics=seen,
        **options(amount),
    )
    rated.write.mode("overwrite").parquet("rated")
    print(explain(seen))


def report(rated):
    result = F.coalesce("error.type", "label").alias("result")
    spent = F.round(F.sum("how.settled_weight"), 3).alias("dollars")
    rated.groupBy(result).agg(F.count("*").alias("rows"), spent).sort("result").show()


def main(*steps):
    for step in steps or ("forecast", "0.10", "1.00"):
        spark = SparkSession.builder.master("local[2]").getOrCreate()
        reviews = spark.range(1000, numPartitions=2).selectExpr(
            "concat('Film ', id, ': a ', array('moving', 'dull', 'long')[id % 3],"
            " ' story with a ', array('great', 'terrible')[id % 2], ' end') AS text"
        )
        if step == "forecast":
            forecast(reviews)
        else:
            rate(reviews, float(step))
            report(spark.read.parquet("rated"))
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
