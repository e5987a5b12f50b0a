"""A real cluster: packages reach the executors, limits span all executors, and no process outlives its job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from tests.processes import is_alive
from tests.real.cluster._driver import Driver
from tests.real.cluster._standalone import Cluster
from tests.service import Service

pytestmark = pytest.mark.thorough

Submit = Callable[..., Driver]
TASKS = 2  # at once: each of the two workers has one core


@dataclass(frozen=True)
class Call:
    """A call to the service: its row, the process that made it, and the home of our packages there."""

    row: int
    process: int
    home: str


def calls(questions: Sequence[str]) -> list[Call]:
    parts = (question.split(" ", 2) for question in questions)
    return [Call(int(row), int(process), home) for row, process, home in parts]


def rows_of(driver: Driver) -> list[int]:
    return sorted(row for row, *_ in driver.result("rows"))


def hold_all_but(service: Service, answered: Callable[[int], bool]) -> Callable[[], None]:
    """Answer only these rows until the returned function is called."""
    release = service.hold()
    hold = service.answer

    async def answer(question: str) -> str:
        return "at once" if answered(calls([question])[0].row) else await hold(question)

    service.answer = answer
    return release


def assert_all_have_hung_up(service: Service, cluster: Cluster, number: int) -> None:
    """Wait until no call runs, no connection is open, and the processes that made the calls are dead."""
    service.wait_until(lambda: service.running == 0 and service.connected == 0)
    assert len(service.calls) == len(service.hung_up) == number
    processes = {call.process for call in calls(service.calls)}
    cluster.master.until(lambda: not any(map(is_alive, processes)))


def test_executors_import_the_sent_packages_and_share_the_cluster_capacity(
    cluster: Cluster, service: Service, submit: Submit, archive: Path
) -> None:
    """No call is answered until as many run as may, and then only after there was time for another one."""
    enough = trio.Event()

    async def answer(question: str) -> str:
        if service.running >= 3 * TASKS:
            await trio.sleep(0.2)
            enough.set()
        await enough.wait()
        return "yes"

    service.answer = answer
    driver = submit(rows=80, partitions=8, cluster_capacity=3 * TASKS + 1)
    assert rows_of(driver) == sorted(call.row for call in calls(service.calls)) == list(range(80))
    assert service.peak_running == 3 * TASKS
    assert driver.result("home") == str(archive)
    homes = {Path(home) for _, _, home in driver.result("rows")}
    assert {home.name for home in homes} == {archive.name}
    assert {home.parents[2] for home in homes} == {worker.work for worker in cluster.workers.values()}


def test_cancelling_the_jobs_ends_the_calls_on_all_executors(
    cluster: Cluster, service: Service, submit: Submit
) -> None:
    service.hold()
    driver = submit(rows=100, partitions=4, capacity=5)
    service.wait_until(lambda: service.running == 5 * TASKS)
    driver.cancel()
    assert "cancelled" in driver.result("error")
    assert_all_have_hung_up(service, cluster, 5 * TASKS)


@pytest.mark.parametrize("victim", ["executor", "worker and its executor, with a persistent cache"])
def test_a_job_writes_each_row_once_after_a_kill(
    cluster: Cluster, service: Service, submit: Submit, tmp_path: Path, victim: str
) -> None:
    """Of each partition's ten rows three are answered, so three more calls start, and five are held."""
    release = hold_all_but(service, lambda row: row % 10 < 3)
    cache = None if victim == "executor" else tmp_path / "answers"
    driver = submit(rows=10 * TASKS, partitions=TASKS, capacity=5, cache=cache)
    service.wait_until(lambda: service.running == 5 * TASKS and len(service.calls) == 8 * TASKS)

    worker = next(iter(cluster.workers.values()))
    lost = [call.row for call in calls(service.calls) if Path(call.home).is_relative_to(worker.work)]
    family = worker.children()
    worker.kill_one(worker.executor() if victim == "executor" else worker.leader.pid)
    service.wait_until(lambda: len(service.hung_up) == 5)
    worker.until(lambda: not any(is_alive(process.pid) for process in family))
    release()

    assert rows_of(driver) == list(range(10 * TASKS))
    assert len(lost) == 8
    repeated = Counter(call.row for call in calls(service.calls)) - Counter(range(10 * TASKS))
    assert repeated == Counter(row for row in lost if cache is None or row % 10 >= 3)
    service.wait_until(lambda: service.connected == 0)


SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1",
    "spark.speculation.efficiency.enabled": "false",
}


@pytest.mark.soak
def test_the_slower_of_two_speculative_tasks_ends_its_calls_and_each_row_is_written_once(
    cluster: Cluster, service: Service, submit: Submit
) -> None:
    """The service answers the first partition's rows only at the second call, which is that of the copy."""

    async def answer(question: str) -> str:
        row = calls([question])[0].row
        if row < 5 and [call.row for call in calls(service.calls)].count(row) == 1:
            await trio.sleep_forever()
        return "yes"

    service.answer = answer
    driver = submit(rows=10, partitions=2, capacity=5, conf=SPECULATION)
    assert rows_of(driver) == list(range(10))
    service.wait_until(lambda: service.running == 0 and service.connected == 0)
    assert Counter(call.row for call in calls(service.calls)) == Counter([*range(10), *range(5)])
    losers = calls(service.hung_up)
    assert sorted(call.row for call in losers) == list(range(5))
    assert len({call.process for call in losers}) == 1
    cluster.master.until(lambda: not is_alive(losers[0].process))


def test_a_driver_that_is_killed_leaves_no_call_no_connection_and_no_process(
    cluster: Cluster, service: Service, submit: Submit
) -> None:
    service.hold()
    driver = submit(rows=100, partitions=4, capacity=5, conf=SPECULATION)
    service.wait_until(lambda: service.running == 5 * TASKS)
    driver.kill()
    assert_all_have_hung_up(service, cluster, 5 * TASKS)
    cluster.master.until(lambda: not cluster.children())
