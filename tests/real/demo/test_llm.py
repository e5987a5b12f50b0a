"""The stand-in for paid LLM services, called by the functions of the example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import trio

from tests.llm import example, served
from trio_asyncio_io import ordered_wait, retry_after
from trio_asyncio_io.gates import Budget
from udfs.demo import llm
from udfs.demo.llm import LLMApp, rating

pytestmark = pytest.mark.processes

TEXTS = ["A moving story", "Dull, but a great end", "A boring, bad film", "A long film"]
SERVICES = ["OpenAI", "Anthropic", "Bedrock"]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "_LATENCY_SECONDS", 0.0)


@pytest.fixture
def app() -> LLMApp:
    """A service at whose clock no time passes: a request may start at once."""
    return LLMApp(requests_per_minute=20, tokens_per_minute=20_000, clock=lambda: 0.0)


@pytest.fixture
def names(app: LLMApp) -> Iterator[dict[str, Any]]:
    """The names of the example, which calls the service."""
    with served(app) as url:
        yield {**example(url), "url": url}


def stats(names: dict[str, Any]) -> dict[str, float]:
    return dict(httpx.get(f"{names['url']}/stats").json())


@pytest.mark.parametrize("service", SERVICES)
def test_the_example_gets_a_rating_for_each_text_and_the_price(names: dict[str, Any], service: str) -> None:
    budget = Budget(1.0, weight=names["dollars"], name="dollars")

    async def main() -> list[Any]:
        async with ordered_wait(TEXTS, names[service](), group=10, timeout=60.0, gate=budget) as results:
            return [result async for result in results]

    assert trio.run(main) == [rating(text) for text in TEXTS]
    counted = stats(names)
    assert budget.spent == pytest.approx(counted["dollars"])
    assert (counted["requests"], counted["rows"], counted["rows_paid_twice"]) == (1, 4, 0)
    assert counted["dollars"] <= sum(map(names["dollars"], TEXTS))


@pytest.mark.parametrize(
    ("service", "seconds", "header"),
    [
        ("OpenAI", 3.0, "x-ratelimit-remaining-requests"),
        ("Anthropic", 3.0, "anthropic-ratelimit-requests-remaining"),
        ("Bedrock", None, None),
    ],
)
def test_a_request_beyond_the_limit_is_refused_and_costs_nothing(
    names: dict[str, Any], service: str, seconds: float | None, header: str | None
) -> None:
    errors: list[Exception] = []
    budget = Budget(1.0, weight=names["dollars"], name="dollars")

    async def keep(text: str, error: Exception) -> None:
        errors.append(error)

    async def main() -> None:
        rater = names[service]()
        async with ordered_wait(
            TEXTS[:3], rater, group=1, capacity=1, timeout=60.0, gate=budget, on_error=keep
        ) as results:
            async for _ in results:
                pass

    trio.run(main)
    (error,) = errors
    assert isinstance(error, httpx.HTTPStatusError)
    assert error.response.status_code == 429
    assert retry_after(error) == seconds
    assert header is None or error.response.headers[header] == "0"
    counted = stats(names)
    assert (counted["answered"], counted["throttled"]) == (2, 1)
    assert budget.spent == pytest.approx(counted["dollars"])


def test_a_call_is_paid_even_if_the_client_hangs_up(names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang_up() -> None:
        rater = names["OpenAI"]()
        await rater.open()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(rater.invoke, TEXTS)
                while not stats(names).get("in_flight"):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        await rater.close()

    async def once_more() -> None:
        rater = names["OpenAI"]()
        await rater.open()
        await rater.invoke(TEXTS)
        await rater.close()

    monkeypatch.setattr(llm, "_LATENCY_SECONDS", 3600.0)
    trio.run(hang_up)
    monkeypatch.setattr(llm, "_LATENCY_SECONDS", 0.0)
    trio.run(once_more)
    counted = stats(names)
    assert (counted["hung_up"], counted["answered"], counted["rows_paid_twice"]) == (1, 1, 4)
    assert counted["dollars_twice"] == pytest.approx(counted["dollars"] / 2)
    assert httpx.post(f"{names['url']}/reset").status_code == 200
    assert stats(names) == {"rows": 0, "rows_paid_twice": 0, "dollars": 0, "dollars_twice": 0}


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/model/some/converse"])
def test_a_request_that_is_not_in_the_protocol_is_an_error_and_costs_nothing(names: dict[str, Any], path: str) -> None:
    response = httpx.post(names["url"] + path, json={"model": "some", "messages": []})
    assert response.status_code == 400
    assert stats(names)["dollars"] == 0
