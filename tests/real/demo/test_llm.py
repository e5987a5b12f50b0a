"""The stand-in for paid LLM services, called by the functions of the examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import trio

from tests.llm import LLMApp, example, served, service
from trio_asyncio_io import ordered_wait, retry_after
from trio_asyncio_io.gates import Budget, CircuitBreaker

pytestmark = pytest.mark.processes

TEXTS = ["A moving story", "Dull, but a great end", "A boring, bad film", "A long film"]
SERVICES = ["OpenAI", "Anthropic", "Bedrock"]
EXPECTED = [("positive", 1.0), ("neutral", 0.0), ("negative", -1.0), ("neutral", 0.0)]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "LATENCY_SECONDS", 0.0)


@pytest.fixture
def app() -> Any:
    """A service at whose clock no time passes: a request may start at once."""
    return LLMApp(requests_per_minute=20, tokens_per_minute=60_000, clock=lambda: 0.0)


@pytest.fixture
def names(app: Any) -> Iterator[dict[str, Any]]:
    """The names of the examples, which call the service."""
    with served(app) as url:
        yield {**example(url), "url": url}


def stats(names: dict[str, Any]) -> dict[str, float]:
    return dict(httpx.get(f"{names['url']}/stats").json())


def stop(names: dict[str, Any]) -> CircuitBreaker:
    """The breaker of the example, which gives up in no time."""
    return CircuitBreaker(calls=1, open_for=15, max_open=15, give_up=0.01, classify=names["kind_of"])


def rated(names: dict[str, Any], function: Any, texts: list[str] = TEXTS, **options: Any) -> list[Any]:
    """The rating of each text, or its error."""

    async def keep(text: str, error: Exception) -> Exception:
        return error

    async def main() -> list[Any]:
        given = {"group": 10, "timeout": 60.0, "on_error": keep, **options}
        async with ordered_wait(texts, function, **given) as results:
            return [result async for result in results]

    return trio.run(main)


@pytest.mark.parametrize("provider", SERVICES)
def test_the_example_gets_a_rating_for_each_text_and_the_price(names: dict[str, Any], provider: str) -> None:
    budget = Budget(1.0, weight=names["dollars"], name="dollars")
    assert rated(names, names[provider](), gate=budget) == EXPECTED
    assert [service.rating(text) for text in TEXTS] == EXPECTED
    counted = stats(names)
    assert budget.spent == pytest.approx(counted["dollars"])
    assert (counted["requests"], counted["rows"], counted["rows_paid_twice"]) == (1, 4, 0)
    assert counted["dollars"] <= sum(map(names["dollars"], TEXTS))


@pytest.mark.parametrize(
    ("provider", "seconds", "header"),
    [
        ("OpenAI", 3.0, "x-ratelimit-remaining-requests"),
        ("Anthropic", 3.0, "anthropic-ratelimit-requests-remaining"),
        ("Bedrock", None, None),
    ],
)
def test_a_request_beyond_the_limit_is_refused_and_costs_nothing(
    names: dict[str, Any], provider: str, seconds: float | None, header: str | None
) -> None:
    budget = Budget(1.0, weight=names["dollars"], name="dollars")
    *_, error = rated(names, names[provider](), TEXTS[:3], group=1, capacity=1, gate=budget)
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

    monkeypatch.setattr(service, "LATENCY_SECONDS", 3600.0)
    trio.run(hang_up)
    monkeypatch.setattr(service, "LATENCY_SECONDS", 0.0)
    trio.run(once_more)
    counted = stats(names)
    assert (counted["hung_up"], counted["answered"], counted["rows_paid_twice"]) == (1, 1, 4)
    assert counted["dollars_twice"] == pytest.approx(counted["dollars"] / 2)
    assert httpx.post(f"{names['url']}/reset").status_code == 200
    assert stats(names) == {"rows": 0, "rows_paid_twice": 0, "dollars": 0, "dollars_twice": 0}


# The estimate


@pytest.mark.variation
@pytest.mark.parametrize(
    "text",
    ["A moving story " * 20, "一个感人的故事" * 40, "Трогательная история " * 20, "👩‍👩‍👧😀🙃" * 20, '"\\\n\t\0' * 30],
)
@pytest.mark.parametrize("provider", SERVICES)
def test_the_estimate_is_enough_for_any_text_if_each_byte_is_a_token(
    names: dict[str, Any], app: Any, monkeypatch: pytest.MonkeyPatch, provider: str, text: str
) -> None:
    def usage(prompt: Any, content: Any) -> Any:
        return service.Usage(len(prompt.read.encode()), prompt.most)

    monkeypatch.setattr(app, "usage", usage)
    texts = [f"{number} {text}" for number in range(10)]
    results = rated(names, names[provider](), texts)
    assert not any(isinstance(result, Exception) for result in results)
    assert 0 < stats(names)["dollars"] <= sum(map(names["dollars"], texts))


# Answers in which something is wrong


def changed(items: list[dict[str, Any]], change: str) -> list[Any]:
    first, second, third, fourth = items
    return {
        "reordered": [fourth, second, first, third],
        "missing": [first, third, fourth],
        "repeated": [first, second, second, third, fourth],
        "foreign": [first, {**second, "id": 5}, third, fourth],
        "counted": [{**item, "id": number} for number, item in enumerate(items, 1)],
        "invalid": [first, {**second, "score": 2.0}, third, fourth],
        "text": [first, "positive", third, fourth],
        "more": [first, {**second, "why": "great"}, third, fourth],
        "null": [first, {"id": second["id"], "label": None, "score": None}, third, fourth],
    }[change]


@pytest.mark.variation
@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ("reordered", []),
        *((change, [1]) for change in ("missing", "repeated", "foreign", "invalid", "text", "more", "null")),
        ("counted", [0, 1, 2, 3]),
    ],
)
@pytest.mark.parametrize("provider", SERVICES)
def test_an_item_counts_for_the_row_of_its_id_and_fails_no_other(  # noqa: PLR0917 - parameters
    names: dict[str, Any], app: Any, monkeypatch: pytest.MonkeyPatch, provider: str, change: str, failed: list[int]
) -> None:
    content: Callable[[Any], dict[str, Any]] = app.content
    monkeypatch.setattr(app, "content", lambda prompt: {"items": changed(content(prompt)["items"], change)})
    results = rated(names, names[provider]())
    for number, (result, expected) in enumerate(zip(results, EXPECTED, strict=True)):
        if number in failed:
            assert type(result).__name__ == "MalformedError"
        else:
            assert result == expected
    assert stats(names)["requests"] == 1


@pytest.mark.variation
@pytest.mark.parametrize(
    ("provider", "fault", "error"),
    [
        *((provider, "malformed", "MalformedError") for provider in SERVICES),
        *((provider, "cut", "TruncatedError") for provider in SERVICES),
        *((provider, "refused", "RefusalError") for provider in SERVICES),
        ("OpenAI", "filtered", "ContentFilterError"),
        ("Bedrock", "filtered", "ContentFilterError"),
    ],
)
def test_an_answer_without_ratings_has_an_error_with_a_name_and_is_paid(
    names: dict[str, Any], provider: str, fault: str, error: str
) -> None:
    budget = Budget(1.0, weight=names["dollars"], name="dollars")
    retry = names["options"](1.0)["retry"]
    results = rated(names, names[provider](), [*TEXTS, f"#{fault}"], gate=budget, retry=retry)
    assert {type(result).__name__ for result in results} == {error}
    counted = stats(names)
    assert counted["requests"] == 1
    assert budget.spent == pytest.approx(counted["dollars"]) != 0


@pytest.mark.parametrize("provider", SERVICES)
def test_a_request_that_a_filter_refuses_has_that_name_and_keeps_its_estimate(
    names: dict[str, Any], provider: str
) -> None:
    texts = [*TEXTS, "#blocked"]
    budget = Budget(1.0, weight=names["dollars"], name="dollars")
    results = rated(names, names[provider](), texts, gate=budget, retry=names["options"](1.0)["retry"])
    assert {type(result).__name__ for result in results} == {"ContentFilterError"}
    assert stats(names)["requests"] == 1
    assert budget.spent == pytest.approx(sum(map(names["dollars"], texts)))


NO_TEXT = {"finish_reason": "stop", "message": {"content": None}}


@pytest.mark.parametrize(
    ("provider", "answer"),
    [
        *((provider, answer) for provider in SERVICES for answer in (None, [], {}, {"usage": None})),
        ("OpenAI", {"usage": {"prompt_tokens": 9, "completion_tokens": 1}, "choices": []}),
        ("OpenAI", {"usage": {"prompt_tokens": 9, "completion_tokens": 1}, "choices": [NO_TEXT]}),
        ("OpenAI", {"usage": {"prompt_tokens": None, "completion_tokens": "1"}, "choices": [NO_TEXT]}),
        ("OpenAI", {"usage": {"prompt_tokens": 9, "completion_tokens": 1}, "choices": [{"message": None}]}),
        ("Anthropic", {"usage": {"input_tokens": 9, "output_tokens": 1}, "stop_reason": "tool_use", "content": None}),
        ("Bedrock", {"usage": {"inputTokens": 9, "outputTokens": 1}, "stopReason": "tool_use", "output": {}}),
    ],
)
def test_an_answer_of_another_form_has_an_error_with_a_name(
    names: dict[str, Any], monkeypatch: pytest.MonkeyPatch, provider: str, answer: Any
) -> None:
    monkeypatch.setattr(getattr(service, provider), "answer", lambda *_: answer)
    results = rated(names, names[provider]())
    assert {type(result).__name__ for result in results} == {"MalformedError"}


def answered(function: Any, *arguments: Any, **more: Any) -> Any:
    """The function, in front of a service that always gives this response."""

    class Answered(type(function)):  # type: ignore[misc]
        async def open(self) -> None:
            transport = httpx.MockTransport(lambda _: httpx.Response(*arguments, **more))
            self.http = httpx.AsyncClient(base_url="http://service", transport=transport)

    return Answered()


def test_an_answer_that_is_not_json_has_an_error_with_a_name(names: dict[str, Any]) -> None:
    results = rated(names, answered(names["OpenAI"](), 200, html="<h1>Sign in</h1>"))
    assert {type(result).__name__ for result in results} == {"MalformedError"}


@pytest.mark.parametrize(
    ("indexes", "expected"),
    [
        ((2, 0, 3, 1), [0, 1, 2, 3]),
        *(
            (indexes, ["MalformedError"] * 4)
            for indexes in ((0, 1, 2), (0, 1, 2, 2), (0, 1, 2, 3, 3), (0, 1, 2, 4), ())
        ),
    ],
)
def test_each_embedding_counts_for_the_text_of_its_index(
    names: dict[str, Any], indexes: tuple[int, ...], expected: list[Any]
) -> None:
    body = {"usage": {"total_tokens": 9}, "data": [{"index": index, "embedding": index} for index in indexes]}
    results = rated(names, answered(names["Embedder"](), 200, json=body))
    assert [type(each).__name__ if isinstance(each, Exception) else each for each in results] == expected


@pytest.mark.parametrize(
    ("provider", "status", "answer"),
    [
        ("OpenAI", 404, {"error": {"message": "The model does not exist", "code": "model_not_found"}}),
        ("Anthropic", 404, {"type": "error", "error": {"type": "not_found_error", "message": "model: claude"}}),
        ("Bedrock", 404, {"message": "The model has reached its end of life"}),
        ("Bedrock", 400, {"message": "The provided model identifier is invalid."}),
    ],
)
def test_a_model_that_the_service_does_not_have_stops_the_job(
    names: dict[str, Any], provider: str, status: int, answer: Any
) -> None:
    retry, gate = names["options"](1.0)["retry"], stop(names)
    with pytest.raises(names["ModelError"]):
        rated(names, answered(names[provider](), status, json=answer), TEXTS * 100, group=1, retry=retry, gate=gate)


# Accounts


@pytest.mark.variation
@pytest.mark.parametrize("provider", SERVICES)
@pytest.mark.parametrize("error", ["WrongKeyError", "QuotaError"])
def test_an_account_that_cannot_pay_stops_the_job(
    names: dict[str, Any], app: Any, monkeypatch: pytest.MonkeyPatch, provider: str, error: str
) -> None:
    if error == "WrongKeyError":
        monkeypatch.setenv("LLM_API_KEY", "wrong")
    else:
        app.quota = 0.0
    retry, gate = names["options"](1.0)["retry"], stop(names)
    with pytest.raises(names[error]):
        rated(names, names[provider](), TEXTS * 100, group=1, capacity=3, retry=retry, gate=gate)
    assert stats(names)["requests"] <= 3
