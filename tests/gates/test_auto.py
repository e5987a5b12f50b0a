"""The gate `Auto`: its start, its hypotheses and their tests, without an operator."""

from __future__ import annotations

from math import inf

import pytest

from trio_asyncio_io._core.automatic._evidence import Call, Evidence
from trio_asyncio_io._core.automatic._limits import Number
from trio_asyncio_io.gates import Auto, Outcome

OK = Outcome("ok")
BUSY = Outcome("overload", error=OSError("busy"))
THROTTLED = Outcome("throttled", error=OSError("too many"))
LATE = Outcome("overload", error=TimeoutError("late"))


class Driver:
    """Starts as many calls as the gate allows, and ends them."""

    def __init__(self, gate: Auto) -> None:
        self.gate = gate
        self.now = 0.0
        self.running: list[float] = []

    def fill(self, most: int = 1_000) -> int:
        """Start calls at this instant until the gate holds one back."""
        started = 0
        while started < most and not self.gate.delay(self.now, 1.0):
            self.gate.started(self.now, 1.0)
            self.running.append(self.now)
            started += 1
        return started

    def end(self, outcome: Outcome = OK, *, position: int = 0) -> None:
        """End a running call, the oldest one by default."""
        self.gate.ended(self.now, self.now - self.running.pop(position), outcome, 1.0)

    def wait(self) -> float:
        """Wait for as long as the gate says."""
        delay = self.gate.delay(self.now, 1.0)
        assert 0 < delay < inf
        self.now += delay
        return delay

    def grow(self, calls: int) -> None:
        """Wait until this number of calls run."""
        while len(self.running) < calls:
            if not self.fill(1):
                self.wait()


def test_six_calls_start_and_then_one_each_10_ms_up_to_128() -> None:
    driver = Driver(Auto())
    assert driver.fill() == 6
    driver.grow(128)
    assert driver.now == pytest.approx(1.22)
    driver.now += 60.0
    assert driver.fill() == 0
    assert driver.gate.delay(driver.now, 1.0) == inf


def test_time_in_which_no_call_waits_for_the_gate_adds_no_calls() -> None:
    driver = Driver(Auto())
    driver.fill()
    driver.now += 60.0
    assert driver.fill() == 1


def test_the_first_limit_and_the_maximum_can_be_given() -> None:
    driver = Driver(Auto(start=20, most=30))
    assert driver.fill() == 20
    driver.grow(30)
    driver.now += 60.0
    assert driver.gate.delay(driver.now, 1.0) == inf
    assert driver.gate.most_at_once == 30


def test_after_the_start_each_answer_adds_two_calls() -> None:
    driver = Driver(Auto(start=128))
    assert driver.fill() == 128
    driver.now += 1.0
    driver.fill()
    for _ in range(64):
        driver.end()
        driver.fill()
    assert driver.gate.limit == 256


def driver_at_number(number: int, outcome: Outcome = BUSY) -> Driver:
    """The service refuses the calls beyond a number, and the gate finds out why."""
    driver = Driver(Auto(start=number + 8))
    driver.fill()
    driver.now += 0.02
    for _ in range(8):
        driver.end(outcome, position=-1)
    driver.wait()
    assert driver.gate.delay(driver.now, 1.0) == inf
    return driver


def test_a_number_that_was_refused_is_exact() -> None:
    driver = driver_at_number(60)
    assert driver.gate.limit == 60
    assert driver.gate.finding == "60 calls at once: the service refused one more 1 time"


@pytest.mark.parametrize("outcome", [BUSY, THROTTLED], ids=["503", "429"])
def test_a_number_leaves_one_place_free_for_a_moment(outcome: Outcome) -> None:
    driver = driver_at_number(20, outcome)
    driver.end()
    assert driver.wait() == pytest.approx(0.2)
    assert driver.gate.finding == "20 calls at once: the service refused one more 1 time"
    assert driver.fill() == 1


def test_a_place_that_another_task_has_taken_is_one_call_fewer() -> None:
    driver = driver_at_number(20, THROTTLED)
    driver.end()
    driver.wait()
    driver.fill()
    driver.now += 0.02
    driver.end(THROTTLED, position=-1)
    assert driver.fill() == 0
    assert driver.gate.finding == "19 calls at once: the service refused one more 2 times"


def test_a_number_is_tested_seldom_while_it_stays_and_soon_after_it_has_fallen() -> None:
    number = Number(20, most=800, few=1)
    for answers in (16, 32, 64):
        number.refused(20)
        assert number.probe_after == answers
    number.answered(0.0, credit=0.0)
    assert number.known == 19  # one is given back
    number.refused(19)
    assert number.cause.startswith("19 calls at once")
    assert number.probe_after == 8


def test_after_a_refusal_no_call_starts_until_the_calls_before_it_are_settled() -> None:
    driver = Driver(Auto())
    driver.fill()
    driver.now = 0.1
    driver.end(BUSY)
    assert driver.fill() == 0
    assert driver.wait() == pytest.approx(2 * 0.1)  # the first time has an error of half
    driver.end()
    driver.end()
    assert driver.fill() == 1
    assert driver.wait() == pytest.approx(0.1 / 4)
    assert driver.fill() == 1


def test_after_a_freeze_calls_start_apart_until_one_is_answered_unless_a_429_may_be_a_rate() -> None:
    for outcome, starts in ((BUSY, 7), (THROTTLED, 1)):
        driver = Driver(Auto(start=8, most=8))
        driver.fill()
        driver.now = 0.1
        driver.end(outcome)
        for _ in range(7):
            driver.end()
        driver.wait()
        assert driver.fill() == 1
        driver.now += 0.05
        driver.end()
        assert driver.fill() == starts + 1 - (outcome is THROTTLED)


def test_a_refusal_of_a_rank_that_is_admitted_starts_no_freeze() -> None:
    for running, may_start in ((10, True), (20, False)):
        driver = Driver(Auto(start=20, most=20))
        driver.fill()
        driver.now = 2.0
        while len(driver.running) >= running:
            driver.end()  # all of them are settled, and pay less than one refusal
        driver.fill(1)
        driver.now += 0.02
        driver.end(BUSY, position=-1)
        assert (driver.fill() > 0) is may_start


def test_5xx_of_a_service_that_has_answered_429_are_chance() -> None:
    driver = driver_at_number(20, THROTTLED)
    limit = driver.gate.limit
    for _ in range(3):
        driver.now += 5.0
        driver.fill()
        driver.end(BUSY)
        driver.end()
    assert driver.gate.limit >= limit
    assert driver.fill() > 0


def test_after_a_freeze_the_start_goes_on_where_it_was() -> None:
    driver = Driver(Auto())
    driver.grow(8)
    driver.end(BUSY)
    driver.wait()
    driver.grow(8)
    driver.now += 60.0
    assert driver.fill() == 1


def test_refusals_that_three_times_twenty_five_calls_do_not_pay_are_a_number() -> None:
    driver = Driver(Auto())
    driver.fill()
    driver.now = 0.02
    for _ in range(4):
        driver.end(BUSY)
    driver.wait()
    assert driver.gate.delay(driver.now, 1.0) == inf
    assert driver.gate.limit == 2


@pytest.mark.parametrize(("in_a_row", "is_chance"), [(1, True), (4, False)])
def test_refusals_are_chance_unless_several_calls_in_a_row_are_refused(in_a_row: int, is_chance: bool) -> None:
    evidence = Evidence()
    for number in range(400):
        evidence.add(Call(float(number), rank=10, was_refused=number % (10 * in_a_row) < in_a_row))
    assert evidence.share == 0.1
    assert evidence.is_chance is is_chance


def test_refusals_that_are_not_paid_are_forgiven_after_three_seconds_without_one() -> None:
    evidence = Evidence()
    for start, was_refused in ((0.0, True), (0.1, True), (3.0, False)):
        evidence.add(Call(start, rank=0, was_refused=was_refused))
    assert evidence.credit == pytest.approx(3 / 25 - 2)
    evidence.add(Call(3.2, rank=0))
    assert evidence.credit == pytest.approx(1 / 25)


def test_a_refusal_that_is_paid_stops_no_call() -> None:
    driver = Driver(Auto(start=64))
    driver.fill()
    driver.now = 1.1
    driver.end()
    driver.fill()
    driver.now += 0.01
    driver.end(BUSY, position=-1)
    assert driver.fill() > 0
    driver.now += 0.01
    driver.end(BUSY, position=-1)
    assert driver.fill() == 0


def test_single_failures_cut_nothing() -> None:
    driver = Driver(Auto())
    for _ in range(40):
        driver.now += 0.05
        driver.fill()
        for _ in range(len(driver.running) - 1):
            driver.end()
    before = driver.gate.limit
    driver.end(BUSY)
    driver.now += 1.0
    driver.fill()
    assert driver.gate.limit >= before


def test_one_more_call_tests_a_number_when_its_refusals_are_paid() -> None:
    driver = driver_at_number(60)
    driver.now += 5.0
    answers = 0
    while driver.gate.limit == 60:
        driver.end()
        driver.now += 1.0
        driver.fill()
        answers += 1
    assert driver.gate.limit == 61
    assert 25 <= answers <= 60


def test_a_pause_of_the_service_holds_all_calls_back_and_one_second_does_not() -> None:
    driver = Driver(Auto())
    driver.fill()
    driver.now = 0.02
    driver.end(Outcome("throttled", 30.0, OSError("wait")))
    assert 30.0 <= driver.gate.delay(driver.now, 1.0) <= 33.0
    other = Driver(Auto())
    other.fill()
    other.now = 0.02
    other.end(Outcome("throttled", 1.0, OSError("wait")))
    other.end()
    assert other.gate.delay(other.now, 1.0) < 1.0


def test_a_pause_of_days_is_cut_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver(Auto(name="api"))
    driver.fill()
    for now in (0.02, 0.03):
        driver.now = now
        driver.end(Outcome("throttled", 16 * 86_400.0, OSError("wait")))
    assert 60.0 <= driver.gate.delay(driver.now, 1.0) <= 66.0
    (message,) = caplog.messages
    assert message == (
        "Auto 'api': the service asks to wait 16 days. The next call is made after 1 minute, and if the service "
        "accepts none for 5 minutes (give_up), the operator stops"
    )


def test_refusals_of_calls_from_before_a_cut_do_not_make_the_rate_negative() -> None:
    driver = Driver(Auto(start=128))
    driver.fill()
    pause = Outcome("throttled", 2.0, OSError("wait"))
    driver.now = 0.02
    for _ in range(120):
        driver.end(pause)
    driver.wait()
    assert driver.fill(1) == 1
    driver.now += 0.02
    driver.end(pause, position=-1)
    driver.wait()
    assert driver.fill(1) == 1


def go_down(driver: Driver, outcome: Outcome = BUSY) -> None:
    """The service refuses every call until the gate notices."""
    for _ in range(1_000):
        if driver.gate.finding.startswith("the service is down"):
            return
        if not driver.running and not driver.fill(1):
            driver.wait()
            continue
        driver.now += 0.02
        driver.end(outcome)
    pytest.fail("the gate has not noticed that the service is down")


def test_in_an_outage_single_calls_probe_the_service_and_become_rarer() -> None:
    driver = Driver(Auto())
    go_down(driver)
    waits = []
    for _ in range(12):
        waits.append(driver.wait())
        assert driver.fill() == 1
        driver.now += 0.02
        driver.end(BUSY)
    assert waits[-1] > 3 * waits[0]


def test_the_limit_returns_after_an_outage() -> None:
    driver = Driver(Auto(start=100))
    driver.fill()
    driver.now += 1.0
    driver.fill()
    before = driver.gate.limit
    while driver.running:
        driver.end()
    go_down(driver)
    driver.wait()
    assert driver.fill() == 1
    driver.now += 0.1
    driver.end()
    driver.now += 1.0
    driver.fill()
    assert driver.gate.limit >= before


def test_after_an_outage_time_alone_does_not_allow_more_calls_than_were_admitted_before() -> None:
    driver = Driver(Auto(start=20, most=200))
    driver.fill()
    driver.now += 0.01
    while driver.running:
        driver.end()
    go_down(driver)
    driver.wait()
    assert driver.fill() == 1
    driver.now += 0.1
    driver.end()
    driver.now += 1.0
    assert driver.fill() == 20


def test_the_gate_gives_up_with_the_error_of_the_service() -> None:
    driver = Driver(Auto(give_up=60.0))
    go_down(driver)
    with pytest.raises(OSError, match="busy") as caught:  # noqa: PT012 - until it raises
        while driver.now < 100.0:
            if not driver.fill():
                driver.wait()
            else:
                driver.now += 0.02
                driver.end(BUSY)
    assert "the service has accepted no call for 1 minute (give_up)" in caught.value.__notes__[0]
    assert 60.0 <= driver.now < 63.0


def test_calls_that_time_out_halve_the_limit_only_when_several_do() -> None:
    driver = Driver(Auto(start=64))
    driver.fill()
    driver.now = 10.0
    driver.fill()
    before = driver.gate.limit
    for _ in range(4):  # one of them is paid
        driver.end(LATE)
    assert driver.gate.limit == before
    driver.end(LATE)
    assert driver.gate.limit <= before / 2


def test_a_cancelled_call_is_no_evidence() -> None:
    driver = Driver(Auto())
    driver.fill()
    while driver.running:
        driver.end(Outcome("cancelled"))
    assert driver.gate.limit == 6
    assert driver.fill() == 6


def test_an_error_of_one_element_is_an_answer() -> None:
    driver = Driver(Auto(start=128))
    driver.fill()
    driver.now = 1.0
    driver.fill()
    driver.end(Outcome("error", error=ValueError("no such record")))
    assert driver.gate.limit == 130


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start": 0}, "start must be at least 1, got 0"),
        ({"start": 20, "most": 10}, "most must be at least start, 20, got 10"),
        ({"most": 0}, "most must be at least 1, got 0"),
        ({"give_up": 0}, "give_up must be seconds above 0, got 0"),
    ],
)
def test_an_argument_out_of_its_range_is_an_error(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Auto(**arguments)  # type: ignore[arg-type]
