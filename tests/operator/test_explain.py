"""`explain()`: each situation has its verdict, on virtual time."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.plain_gates import AtMost
from trio_asyncio_io import FixedDelay, StreamRecord, Verdict, Watermark, keyed_wait, ordered_wait, unordered_wait
from trio_asyncio_io.gates import Auto, PerKey, RateLimit

pytestmark = pytest.mark.usefixtures("no_cpu_time")


async def flood(count: int) -> AsyncIterator[int]:
    for value in range(count):
        yield value


async def trickle(count: int, seconds: float) -> AsyncIterator[int]:
    for value in range(count):
        await trio.sleep(seconds)
        yield value


async def trickle_then_flood(count: int, seconds: float) -> AsyncIterator[int]:
    async for value in trickle(20, seconds):
        yield value
    async for value in flood(count):
        yield value


async def one_second(value: int) -> int:
    await trio.sleep(1.0)
    return value


async def straggler(value: int) -> int:
    await trio.sleep(100.0 if value % 50 == 0 else 1.0)
    return value


async def fails(value: int) -> int:
    await trio.sleep(1.0)
    raise ValueError(value)


async def never_ends(value: int) -> int:
    if value % 10:
        await trio.sleep_forever()
    return await one_second(value)


async def replaced(value: int, error: Exception) -> int:
    return value


class Flaky:
    """A service that fails at the first two attempts for each value."""

    def __init__(self) -> None:
        self.attempts: dict[int, int] = {}

    async def __call__(self, value: int) -> int:
        self.attempts[value] = self.attempts.get(value, 0) + 1
        await trio.sleep(1.0)
        if self.attempts[value] < 3:
            raise ConnectionError
        return value


class FailsFirst:
    """A service that fails at the first attempt for one value in `every`."""

    def __init__(self, every: int = 1) -> None:
        self.every = every
        self.seen: set[int] = set()

    async def __call__(self, value: int) -> int:
        await trio.sleep(0.1)
        if value % self.every == 0 and value not in self.seen:
            self.seen.add(value)
            raise ConnectionError
        return value


class AgainAtFirst:
    """A service whose first result for each key is asked for again; all others take ten seconds."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    async def __call__(self, value: tuple[int, int]) -> str:
        key, number = value
        if number == 0 and key not in self.seen:
            self.seen.add(key)
            await trio.sleep(1.0)
            return "again"
        await trio.sleep(10.0)
        return "done"


async def blocks(value: int) -> int:
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, MockClock)
    clock.jump(1.0)  # as `time.sleep` does with the real clock
    return value


def hot_key(value: int) -> int:
    """Nine values in ten have the same key."""
    return value if value % 10 == 0 else -1


class Saturated:
    """A service that answers five calls at once, in one second."""

    def __init__(self) -> None:
        self.limit = trio.CapacityLimiter(5)

    async def __call__(self, value: int) -> int:
        async with self.limit:
            await trio.sleep(1.0)
        return value


class Shared:
    """A service of which each running call slows down the others that start with it: all in a group end together."""

    def __init__(self) -> None:
        self.running = 0

    async def __call__(self, value: int) -> int:
        self.running += 1
        await trio.sleep(0.0)
        await trio.sleep(self.running / 5)
        self.running -= 1
        return value


class WithAKnee:
    """A service that answers ten calls at once in a second, and gets slower for all with more."""

    def __init__(self) -> None:
        self.running = 0

    async def __call__(self, value: int) -> int:
        self.running += 1
        await trio.sleep(0.0)
        await trio.sleep(max(1.0, self.running / 10))
        self.running -= 1
        return value


async def slow_handler(value: int, error: Exception) -> int:
    await trio.sleep(9.0)
    return value


@dataclass
class Situation:
    """A planted bottleneck.

    Attributes:
        limit: The verdict on it.
        advice: A part of the advice.
    """

    limit: str
    source: Callable[[], Any]
    function: Callable[[], Any] = lambda: one_second
    _: KW_ONLY
    wait: Any = ordered_wait
    options: dict[str, Any] = field(default_factory=dict)
    consumer_seconds: float = 0.0
    advice: str = ""


SITUATIONS = {
    "all slots are busy": Situation("capacity", lambda: flood(500), advice="Try capacity=20: "),
    "all slots are busy, and latency did not rise": Situation(
        "capacity", lambda: trickle_then_flood(500, 1.0), advice="Try capacity=20: "
    ),
    "slots are busy with handlers": Situation(
        "capacity", lambda: flood(200), lambda: fails, options={"on_error": slow_handler, "timeout": 20.0}
    ),
    "all slots are busy until the source ends, which has few elements": Situation("capacity", lambda: flood(25)),
    "there are fewer elements than slots": Situation(
        "source", lambda: flood(25), options={"capacity": 40}, advice="More capacity changes nothing"
    ),
    "there are as many elements as slots": Situation("source", lambda: flood(10)),
    "one slot, and few elements": Situation("capacity", lambda: flood(4), options={"capacity": 1}),
    "all calls fail": Situation(
        "capacity",
        lambda: flood(200),
        lambda: fails,
        options={"on_error": replaced},
        advice="Find out why the calls fail",
    ),
    "the source is slow": Situation("source", lambda: trickle(200, 0.5), advice="capacity=3 is enough"),
    "the source is a little slower than the slots": Situation("source", lambda: trickle(500, 0.12)),
    "the consumer is slow": Situation("consumer", lambda: flood(200), consumer_seconds=0.5),
    "the consumer is slow, and the buffer holds the whole source": Situation(
        "consumer", lambda: flood(200), options={"buffer": 1000}, consumer_seconds=0.5
    ),
    "the buffer is full of results behind a straggler": Situation(
        "buffer", lambda: flood(500), lambda: straggler, options={"buffer": 20}, advice="Set buffer="
    ),
    "a straggler with a large buffer": Situation(
        "capacity", lambda: flood(2000), lambda: straggler, options={"buffer": 2000}
    ),
    "a straggler without order": Situation(
        "capacity", lambda: flood(1000), lambda: straggler, options={"buffer": 20}, wait=unordered_wait
    ),
    "one key is hot, and the buffer is full": Situation(
        "key", lambda: flood(500), wait=keyed_wait, options={"key": hot_key}, advice="Use a finer key"
    ),
    "one key is hot, and the buffer holds the whole source": Situation(
        "key", lambda: flood(200), wait=keyed_wait, options={"key": hot_key, "buffer": 1000}
    ),
    "two keys, and the buffer holds the whole source": Situation(
        "key", lambda: flood(200), wait=keyed_wait, options={"key": lambda value: value % 2, "buffer": 1000}
    ),
    "one key, and the buffer holds the whole source": Situation(
        "key", lambda: flood(200), wait=keyed_wait, options={"key": lambda value: 0, "buffer": 1000}
    ),
    "keys without a hot one": Situation("capacity", lambda: flood(500), wait=keyed_wait, options={"key": abs}),
    "keys, and a slow source": Situation("source", lambda: trickle(200, 0.5), wait=keyed_wait, options={"key": abs}),
    "a live source, and new records wait for retries": Situation(
        "retries",
        lambda: trickle(150, 0.1),
        FailsFirst,
        options={"capacity": 5, "buffer": 1000, "retry": FixedDelay(3, 3.0)},
    ),
    "a live source, and one hot key": Situation(
        "key", lambda: trickle(150, 0.1), wait=keyed_wait, options={"key": lambda value: 0, "buffer": 1000}
    ),
    "a slow source, and some records are retried": Situation(
        "source", lambda: trickle(200, 0.5), lambda: FailsFirst(10), options={"retry": FixedDelay(3, 3.0)}
    ),
    "a slow source, and records wait for their group": Situation(
        "source", lambda: trickle(200, 0.5), lambda: one_second, options={"group": 10, "group_wait": 4.0}
    ),
    "keys wait for retries, and after the end of the input all slots are busy": Situation(
        "capacity",
        lambda: [(key, number) for number in range(10) for key in range(40)],
        AgainAtFirst,
        wait=keyed_wait,
        options={
            "key": lambda value: value[0],
            "buffer": 400,
            "retry": FixedDelay(1, 150.0, retry_on_result=lambda result: result == "again"),
            "timeout": 1e4,
        },
    ),
    "a rate limit": Situation("gate", lambda: flood(200), options={"gate": RateLimit(2.0)}),
    "a rate limit of each key": Situation(
        "gate", lambda: flood(200), options={"gate": PerKey(RateLimit(1.0), key=lambda value: value % 2)}
    ),
    "a capacity that the service does not raise": Situation("gate", lambda: flood(200), options={"gate": Auto(most=2)}),
    "most calls time out": Situation(
        "timeouts",
        lambda: flood(200),
        lambda: never_ends,
        options={"timeout": 5.0, "on_error": replaced},
        advice="shorter timeout",
    ),
    "attempts are repeated": Situation(
        "retries",
        lambda: flood(200),
        Flaky,
        options={"retry": FixedDelay(3, 0.25, retry_on=ConnectionError)},
        advice="retry budget",
    ),
    "backoffs take longer than attempts": Situation(
        "retries", lambda: flood(200), Flaky, options={"retry": FixedDelay(3, 9.0, retry_on=ConnectionError)}
    ),
    "the function blocks the loop": Situation("blocking", lambda: flood(200), lambda: blocks, advice="in_thread"),
    "the service is saturated": Situation(
        "service",
        lambda: trickle_then_flood(500, 1.0),
        Saturated,
        options={"capacity": 50, "timeout": 100.0},
        advice="for this one, capacity=5 is enough",
    ),
    "the service has a knee": Situation(
        "service",
        lambda: trickle_then_flood(1000, 1.0),
        WithAKnee,
        options={"capacity": 80, "buffer": 200},
        advice="capacity=10 is enough",
    ),
    "the calls share the service": Situation(
        "service", lambda: trickle_then_flood(500, 1.0), Shared, options={"capacity": 50, "timeout": 100.0}
    ),
}


async def explained(situation: Situation, ask: Callable[[Any], None] | None = None, **changed: Any) -> Verdict:
    options = {"capacity": 10, "buffer": 50, "timeout": 200.0} | situation.options | changed
    options["buffer"] = max(options["buffer"], options["capacity"])
    async with situation.wait(situation.source(), situation.function(), **options) as results:
        async for _ in results:
            await trio.sleep(situation.consumer_seconds)
            if ask is not None:
                ask(results)
    verdict: Verdict = results.explain()
    return verdict


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
async def test_each_situation_has_its_verdict(situation: Situation, autojump_clock: MockClock) -> None:
    verdict = await explained(situation)
    assert verdict.limit == situation.limit, str(verdict)
    assert situation.advice in verdict.advice


@pytest.mark.thorough
@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
async def test_the_verdict_is_the_same_while_it_runs(situation: Situation, autojump_clock: MockClock) -> None:
    seen: list[str] = []
    await explained(situation, lambda results: seen.append(results.explain().limit))
    assert seen[len(seen) * 3 // 4] == situation.limit


async def test_a_busy_thread_is_the_limit(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_asyncio_io._operator.tasks.thread_time", lambda: 0.95 * trio.current_time())
    monkeypatch.setattr("trio_asyncio_io._operator.tasks.cpu_wait", lambda: 0.0)
    verdict = await explained(SITUATIONS["all slots are busy"])
    assert verdict.limit == "cpu"
    assert "95%" in str(verdict)


async def test_before_the_first_call_has_ended_nothing_is_known(autojump_clock: MockClock) -> None:
    async with ordered_wait(range(10), one_second, timeout=5.0) as results:
        assert results.explain().limit == "unknown"
        await trio.sleep(0.5)
        assert results.explain().limit == "unknown"


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (0, "No call has taken any time: 0 ended, 0 run."),
        (1, "Too few calls to judge: of 1 started, 1 ended, with a capacity of 10."),
        (9, "Too few calls to judge: of 9 started, 9 ended, with a capacity of 10."),
    ],
)
@pytest.mark.parametrize("source", [flood, partial(trickle, seconds=5.0)], ids=["at once", "slowly"])
async def test_few_elements_are_too_few_to_judge(
    count: int, sentence: str, source: Callable[[int], Any], autojump_clock: MockClock
) -> None:
    verdict = await explained(Situation("unknown", lambda: source(count)))
    assert (verdict.limit, verdict.sentences[-1]) == ("unknown", sentence)


async def test_the_number_of_calls_that_run_is_stated(autojump_clock: MockClock) -> None:
    async with ordered_wait(range(7), one_second, timeout=5.0) as results:
        await trio.sleep(0.5)
        assert results.explain().sentences == ("No call has taken any time: 0 ended, 7 run.",)


async def test_slots_whose_first_calls_still_run_are_not_judged(autojump_clock: MockClock) -> None:
    """The mean latency of the calls that have ended is that of the fast ones."""

    async def uneven(value: int) -> int:
        await trio.sleep(0.1 if value < 15 else 1.0)
        return value

    async with ordered_wait(range(1000), uneven, timeout=5.0, capacity=100) as results:
        await trio.sleep(0.5)
        assert results.explain().limit == "unknown"
        assert "of 115 started, 15 ended" in str(results.explain())
        assert len([result async for result in results]) == 1000
    assert results.explain().limit == "capacity"


async def test_calls_that_take_no_time_are_not_judged(autojump_clock: MockClock) -> None:
    async def at_once(value: int) -> int:
        return value

    verdict = await explained(Situation("unknown", lambda: flood(40), lambda: at_once))
    assert (verdict.limit, verdict.sentences) == ("unknown", ("No call has taken any time: 40 ended, 0 run.",))


async def test_the_verdict_does_not_change_after_the_block(autojump_clock: MockClock) -> None:
    async with ordered_wait(range(30), one_second, timeout=5.0, capacity=10) as results:
        assert len([result async for result in results]) == 30
    verdict = results.explain()
    await trio.sleep(1000.0)
    assert results.explain() == verdict


async def hangs_for_some(values: list[int]) -> list[int]:
    await trio.sleep(math.inf if values[0] in {0, 20} else 0.4)
    return values


async def one_second_for_all(values: list[int]) -> list[int]:
    await trio.sleep(1.0)
    return values


async def flood_with_watermarks(count: int) -> AsyncIterator[Any]:
    for number in range(count):
        yield StreamRecord(number, timestamp=number)
        yield Watermark(number)


ONE_AT_A_TIME = {
    "the buffer holds one group": Situation(
        "buffer",
        lambda: flood(200),
        lambda: one_second_for_all,
        wait=unordered_wait,
        options={"group": 10, "buffer": 10, "capacity": 2},
    ),
    "groups, of which some time out": Situation(
        "buffer",
        lambda: flood(40),
        lambda: hangs_for_some,
        options={"group": 10, "buffer": 10, "capacity": 2, "timeout": 0.5, "on_error": "skip"},
    ),
    "a gate, keys, watermarks and a slow consumer": Situation(
        "consumer",
        lambda: flood_with_watermarks(40),
        wait=keyed_wait,
        options={"key": lambda value: value % 10, "buffer": 10, "capacity": 2},
        consumer_seconds=1.0,
    ),
}


@pytest.mark.parametrize("situation", ONE_AT_A_TIME.values(), ids=ONE_AT_A_TIME.keys())
async def test_one_call_at_a_time_that_awaits_does_not_block(
    situation: Situation, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    if situation.wait is keyed_wait:
        situation = replace(situation, options=situation.options | {"gate": AtMost(1)})
    verdict = await explained(situation)
    assert verdict.limit == situation.limit, str(verdict)
    assert caplog.messages == []


async def blocks_and_fails(value: int) -> int:
    await blocks(value)
    raise ConnectionError


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"capacity": 1},
        {"gate": RateLimit(100.0)},
        {"group": 1},
        {"retry": FixedDelay(1, 0.0)},
        {"retry": FixedDelay(1, 0.0, retry_on_result=lambda _: False)},
    ],
    ids=["alone", "one slot", "a gate", "groups", "retries", "results that may be retried"],
)
@pytest.mark.parametrize("count", [2, 3, 30])
@pytest.mark.parametrize("function", [blocks, blocks_and_fails])
async def test_a_function_that_blocks_is_named_however_few_calls_it_makes(
    count: int, function: Any, options: dict[str, Any], autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    if "group" in options:
        function = partial(of_each, function)
    options = {"on_error": "skip", **options}
    verdict = await explained(Situation("blocking", lambda: flood(count), lambda: function, options=options))
    assert verdict.limit == "blocking", str(verdict)
    [message] = caplog.messages
    assert "blocked the Trio loop for 1000 ms in each call" in message


async def of_each(function: Any, values: list[int]) -> list[int]:
    return [await function(value) for value in values]


@pytest.mark.parametrize(
    ("situation", "sentence", "advice"),
    [
        pytest.param(
            replace(ONE_AT_A_TIME["the buffer holds one group"], options={"group": 20, "buffer": 20, "capacity": 10}),
            "The buffer of 20 was full ",
            "Set buffer=200.",
            id="a buffer of one group",
        ),
        pytest.param(
            Situation(
                "unknown",
                lambda: trickle(50, 1.0),
                lambda: one_second_for_all,
                options={"group": 10, "group_wait": 30.0},
            ),
            "Too few calls to judge: of 5 started, 5 ended, with a capacity of 10.",
            "Judge a run in which at least 10 calls, and one in each slot, have ended.",
            id="few calls of many records",
        ),
        pytest.param(
            Situation(
                "capacity",
                lambda: trickle(500, 0.1),
                lambda: one_second_for_all,
                options={"group": 50, "group_wait": 0.0, "capacity": 2, "buffer": 1_000},
            ),
            "of at most 50 records",
            "Make fewer calls: with a longer group_wait, more records share one.",
            id="groups that do not wait",
        ),
        pytest.param(
            Situation(
                "gate",
                lambda: flood(500),
                lambda: one_second_for_all,
                options={"group": 2, "capacity": 25, "gate": RateLimit(10.0)},
            ),
            "Summed over all records: RateLimit",
            "If the gate counts calls, make fewer: use a larger group, or a longer group_wait if groups are not full.",
            id="a rate of calls in front of full groups",
        ),
    ],
)
async def test_groups_have_their_own_reasons_and_advice(
    situation: Situation, sentence: str, advice: str, autojump_clock: MockClock
) -> None:
    verdict = await explained(situation)
    assert verdict.limit == situation.limit, str(verdict)
    assert sentence in "\n".join(verdict.sentences)
    assert verdict.advice.endswith(advice)


async def test_an_unordered_run_is_not_told_to_be_unordered(autojump_clock: MockClock) -> None:
    situation = Situation(
        "buffer",
        lambda: flood_with_watermarks(500),
        lambda: straggler,
        wait=unordered_wait,
        options={"buffer": 20},
    )
    verdict = await explained(situation)
    assert verdict.limit == "buffer", str(verdict)
    assert "unordered_wait" not in verdict.advice


async def test_an_unread_dead_letter_does_not_hide_a_slow_consumer(autojump_clock: MockClock) -> None:
    async def fails_for_0(value: int) -> int:
        await trio.sleep(0.1)
        if value == 0:
            raise ValueError
        return value

    async with ordered_wait(range(100), fails_for_0, capacity=10, timeout=5.0, on_error="dead_letter") as results:
        async for _ in results:
            await trio.sleep(1.0)
    assert results.explain().limit == "consumer"
