"""Start `python llm_service.py` first."""

import json
import os
import re
import sys
from contextlib import contextmanager
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F

from trio_asyncio_io.gates import CircuitBreaker, settle
from udfs import (
    AsyncFunction,
    ClusterBudget,
    ClusterRate,
    ExponentialBackoff,
    explain,
    rehearse,
    transient,
    unordered_wait,
)
from udfs.http import client

SERVICE = "http://127.0.0.1:8001"  # the stand-in
REQUESTS, TOKENS = 300, 60_000  # per minute: the limits of your account
INPUT, OUTPUT = 3e-6, 15e-6  # dollars for a token

GROUP = 10  # texts in a request
LONGEST = 30  # tokens of a rating
HIDDEN = 50  # tokens that the service adds to a request
INSTRUCTIONS = "Rate the sentiment of each text of the JSON array. Repeat its id."


class Rating(BaseModel, extra="forbid", strict=True):
    id: int
    label: Literal["positive", "neutral", "negative"]
    score: float = Field(ge=-1, le=1)


class Answer(BaseModel):
    items: list[Any]  # each is checked by itself


def schema_of(item):
    return {
        "type": "object",
        "properties": {"items": {"type": "array", "items": item.model_json_schema()}},
        "required": ["items"],
        "additionalProperties": False,
    }


class RefusalError(Exception):
    """The model refuses to answer."""


class ContentFilterError(Exception):
    """A filter of the service has stopped the texts or the answer."""


class TruncatedError(Exception):
    """The answer is longer than the request allows."""


class MalformedError(Exception):
    """The answer does not follow the schema."""


class AccountError(Exception):
    """No call can succeed, so the job stops."""


class WrongKeyError(AccountError):
    """The service does not know the key, or does not allow it this call."""


class ModelError(AccountError):
    """The service has no such model."""


class QuotaError(AccountError):
    """The credit of the account is used up."""


class Rater(AsyncFunction):
    item = Rating  # the answer for one text
    instructions = INSTRUCTIONS

    async def open(self):  # once per Python worker process
        headers = self.headers(os.environ.get("LLM_API_KEY", "secret"))
        self.http = client(base_url=SERVICE, headers=headers, timeout=60.0)

    async def invoke(self, texts):  # once per attempt of a group
        rows = [{"id": id_of(n), "text": text} for n, text in enumerate(texts)]
        body = await self.send(self.request(as_json(rows), LONGEST * len(texts)))
        with reading():
            read, written = self.usage(body)
            settle(read + written, "tokens")
            settle(INPUT * read + OUTPUT * written, "dollars")
            items = Answer.model_validate(self.content(body)).items
        return [self.result(n, items) for n in range(len(texts))]

    def result(self, n, items):  # or the error of this row
        own = [item for item in items if has_id(item, id_of(n))]
        if len(own) != 1:
            return MalformedError(f"{len(own)} items have the id of this text, not one")
        try:
            _, *values = dict(self.item.model_validate(own[0])).values()
        except ValidationError as error:
            return MalformedError(str(error))
        return tuple(values)

    async def send(self, request):
        response = await self.http.post(self.path, json=request)
        if response.is_error:
            self.check_error(response.status_code, response.text)
        with reading():
            return response.raise_for_status().json()

    def check_error(self, status, text):
        if status == 400 and re.search("content.filter", text):  # may have a price
            raise ContentFilterError(text)
        settle(0.0)  # any other refused request costs nothing
        if status in {401, 403}:
            raise WrongKeyError(text)
        if status == 404 or self.no_model in text:
            raise ModelError(text)
        if status == 402 or self.no_quota in text:
            raise QuotaError(text)

    async def close(self):
        await self.http.aclose()


@contextmanager
def reading():  # an answer may have any form
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise MalformedError(f"{type(error).__name__}: {error}") from error


def id_of(n):  # not 1, 2, 3: a model that counts by itself must be noticed
    return 101 * (n + 1)


def has_id(item, number):
    return isinstance(item, dict) and item.get("id") == number


def as_json(value):  # Chinese is not escaped: that would be three times as long
    return json.dumps(value, ensure_ascii=False)


class OpenAI(Rater):
    path = "/v1/chat/completions"
    no_model = "model_not_found"
    no_quota = "insufficient_quota"  # in a 429, which a retry does not cure

    def headers(self, key):
        return {"authorization": f"Bearer {key}"}

    def request(self, message, longest):
        schema = {"name": "items", "strict": True, "schema": schema_of(self.item)}
        return {
            "model": "gpt-4.1-mini",
            "max_completion_tokens": longest,
            "messages": [
                {"role": "system", "content": self.instructions},
                {"role": "user", "content": message},
            ],
            "response_format": {"type": "json_schema", "json_schema": schema},
        }

    def usage(self, body):
        return body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]

    def content(self, body):
        choice = body["choices"][0]
        if choice["message"].get("refusal"):
            raise RefusalError(choice["message"]["refusal"])
        if choice["finish_reason"] == "content_filter":
            raise ContentFilterError("the service has filtered the answer")
        if choice["finish_reason"] == "length":
            raise TruncatedError(f"the answer has {body['usage']}")
        return json.loads(choice["message"]["content"])


def input_tokens(text):  # at most: no tokenizer makes more tokens than bytes
    row = {"id": id_of(GROUP), "text": text}
    shared = INSTRUCTIONS + as_json(schema_of(Rating))
    return (len(shared.encode()) + HIDDEN) / GROUP + len(as_json(row).encode()) + 2


def dollars(text):  # at most
    return INPUT * input_tokens(text) + OUTPUT * LONGEST


def tokens(text):  # for the pace: what is usual
    return input_tokens(text) / 4 + LONGEST / 2


def kind_of(error):
    return "overload" if isinstance(error, AccountError) else "error"


RATER = OpenAI()
RATING = "label string, score double"
STOP = CircuitBreaker(calls=1, open_for=15, max_open=15, give_up=10, classify=kind_of)


def options(amount):
    return {
        "inputs": ["text"],
        "group": GROUP,
        "timeout": 120.0,  # seconds for a request, its retries and their backoffs
        "retry": ExponentialBackoff(8, initial=1.0, maximum=30.0, retry_on=transient),
        "cluster_rate": [
            ClusterRate(REQUESTS / 60, by="lease", name="requests"),
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
        gate=STOP,  # after an AccountError
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
