"""The real operator, in every interleaving of small worlds: each keeps all that is promised (see `OperatorWorld`).

A table has the number of schedules and of states by world. They are the same on each machine, and a number that changes
is a changed behaviour: look at it before you write the new one into the table.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.explored.world import Setting, explore_world

pytestmark = pytest.mark.slow

Table = list[tuple[int, int, Setting]]
FEW_STATES = 300  # that `just test` explores in a world


# fmt: off
PLAIN: Table = [
    (10, 24, Setting(is_eager=True)),
    (10, 25, Setting(walls=(0,), mode="unordered", is_eager=True)),
    (65, 346, Setting(records=4, walls=(1,), is_slow=True)),
    (72, 392, Setting(records=4, walls=(1,), mode="unordered", capacity=3, buffer=4, bound=1)),
    (32, 206, Setting(records=4, walls=(1,), mode="keyed", capacity=3, buffer=4, close_after=2, bound=1)),
    (22, 117, Setting(records=7, capacity=1, buffer=6, is_slow=True, bound=0)),
    (44, 281, Setting(records=9, capacity=1, buffer=3, mode="unordered", is_slow=True, bound=1)),
    (33, 205, Setting(records=3, source="slowly")),
    (32, 135, Setting(records=3, consumers=2, flatten=(2, 1, 0), is_slow=True, bound=0)),
    (26, 177, Setting(records=3, source="put", mode="keyed", is_slow=True, bound=1)),
    (130, 245, Setting(records=3, consumers=2, is_slow=True, is_crowded=True)),
    (9, 53, Setting(records=3, walls=(1,), mode="unordered", flatten=(2, 0, 2))),
    (157, 808, Setting(records=4, timeout=3.0, is_slow=True, is_accounted=True, bound=0)),
]
ATTEMPTS: Table = [
    (58, 295, Setting(records=3, mode="keyed", buffer=3, fails=True, bound=1)),
    (10, 113, Setting(records=5, mode="keyed", buffer=5, bound=0)),
    (1, 17, Setting(records=4, mode="keyed", capacity=1, buffer=4, bound=0)),
    (9, 137, Setting(
        records=3, capacity=1, buffer=3, retries=1, fails=True, unwinds_slowly=True, stop_after=1, bound=0)),
    (23, 82, Setting(capacity=1, retries=1, fails=True, sets_variable=True)),
    (109, 567, Setting(timeout=3.0, retries=1, fails=True, bound=0)),
    (354, 2059, Setting(records=3, buffer=3, timeout=2.0, retries=1, bound=0)),
    (138, 546, Setting(records=3, timeout=3.0, is_crowded=True, bound=1)),
    (175, 653, Setting(timeout=3.0, retries=1, is_crowded=True, bound=0)),
    (18, 53, Setting(capacity=1, timeout=3.0, is_crowded=True)),
    (44, 317, Setting(timeout=2.0, retries=1, unwinds_slowly=True, bound=0)),
    (10, 69, Setting(capacity=1, timeout=2.0, unwinds_slowly=True, bound=1)),
    (73, 132, Setting(fails=True, on_error="handler", is_eager=True)),
    (48, 73, Setting(fails=True, on_error="dead_letter", is_eager=True)),
    (8, 56, Setting(records=3, walls=(0,), mode="unordered", capacity=1, fails=True, on_error="dead_letter", bound=0)),
    (97, 508, Setting(records=3, capacity=1, retries=1, fails=True, is_slow=True, is_accounted=True, bound=0)),
    (164, 793, Setting(capacity=1, timeout=3.0, retries=1, fails=True, is_slow=True, is_accounted=True, bound=1)),
]
STOPPED: Table = [
    (192, 486, Setting(cancel=True, is_eager=True, bound=1)),
    (60, 242, Setting(interrupt=True, is_eager=True, bound=0)),
    (25, 62, Setting(records=1, unwinds_slowly=True, cancel=True, is_eager=True)),
    (51, 238, Setting(unwinds_slowly=True, cancel=True, bound=2)),
    (70, 488, Setting(retries=1, cancel=True, bound=0)),
    (128, 436, Setting(records=3, source="put", cancel=True, bound=2)),
    (200, 656, Setting(records=3, source="put", interrupt=True, is_eager=True, bound=0)),
    (30, 328, Setting(records=4, walls=(1,), mode="keyed", buffer=3, cancel=True, bound=0)),
    (62, 53, Setting(records=3, walls=(1,), flatten=(2, 0, 1), stop_after=1)),
    (71, 261, Setting(
        records=3, walls=(0, 1), mode="unordered", flatten=(1, 0, 2), source="slowly", stop_after=2, bound=1)),
    (33, 71, Setting(records=3, mode="unordered", buffer=3, close_after=1)),
    (210, 561, Setting(fails=True, on_error="raise", is_eager=True, bound=1)),
    (35, 370, Setting(records=3, capacity=1, timeout=2.0, on_error="raise", bound=0)),
    (101, 493, Setting(records=3, capacity=1, fails=True, on_error="dead_letter", is_slow=True, cancel=True, bound=0)),
    (66, 722, Setting(records=3, fails=True, on_error="dead_letter", interrupt=True, bound=0)),
    (71, 318, Setting(records=3, consumers=2, is_slow=True, cancel=True, bound=0)),
]
GATES_AND_GROUPS: Table = [
    (123, 702, Setting(capacity=1, retries=1, gate="per key", bound=0)),
    (23, 54, Setting(gate="one")),
    (370, 1869, Setting(records=3, fails=True, on_error="handler", gate="one", bound=0)),
    (192, 1115, Setting(records=4, capacity=3, buffer=4, gate="one", is_accounted=True, bound=0)),
    (30, 189, Setting(records=3, buffer=3, gate="one", is_accounted=True, bound=0)),
    (55, 200, Setting(timeout=2.0, gate="one", is_crowded=True, bound=0)),
    (60, 308, Setting(records=3, capacity=1, gate="one", refuses=True, bound=1)),
    (48, 379, Setting(records=3, gate="one", refuses=True, stop_after=1, bound=0)),
    (136, 362, Setting(gate="one", cancel=True, bound=1)),
    (182, 482, Setting(gate="per key", cancel=True, bound=1)),
    (56, 305, Setting(records=3, capacity=1, buffer=3, gate="per key", refuses=True, bound=0)),
    (30, 107, Setting(records=3, buffer=3, group=2, gate="one", bound=1)),
    (72, 336, Setting(records=3, buffer=3, fails=True, group=2, gate="per key", bound=0)),
    (19, 77, Setting(records=3, capacity=1, buffer=3, fails=True, group=2, group_split=True)),
    (20, 148, Setting(records=3, capacity=1, buffer=3, retries=1, fails=True, group=2, group_split=True, bound=0)),
    (89, 421, Setting(records=3, buffer=3, timeout=3.0, fails=True, group=2, group_split=True, bound=0)),
    (108, 417, Setting(records=3, capacity=1, buffer=3, retries=1, fails=True, group=2, cancel=True, bound=1)),
    (16, 51, Setting(fails=True, on_error="dead_letter", group=2, stop_after=1, bound=1)),
]
LONGER: Table = [
    (405, 608, Setting(records=3, consumers=2, is_slow=True, is_eager=True, bound=1)),
    (284, 1007, Setting(records=4, consumers=2, mode="unordered", flatten=(2, 0, 1, 1), is_slow=True, bound=1)),
    (177, 695, Setting(timeout=3.0, retries=1, fails=True)),
    (715, 3874, Setting(records=3, buffer=3, timeout=3.0, retries=1, bound=0)),
    (286, 1392, Setting(
        records=3, walls=(1,), mode="unordered", fails=True, on_error="dead_letter", is_slow=True, bound=0)),
    (474, 1660, Setting(retries=1, fails=True, gate="one", is_accounted=True, bound=0)),
    (375, 2383, Setting(records=3, mode="keyed", buffer=3, timeout=3.0, retries=1, bound=0)),
    (404, 1884, Setting(retries=1, gate="per key", bound=0)),
    (481, 2979, Setting(records=3, mode="keyed", buffer=3, retries=1, fails=True, bound=0)),
    (344, 2583, Setting(records=3, buffer=3, retries=1, is_accounted=True, bound=0)),
    (279, 631, Setting(capacity=1, timeout=3.0, retries=1, on_error="raise")),
    (369, 761, Setting(cancel=True, is_eager=True, bound=2)),
    (207, 557, Setting(interrupt=True, is_eager=True, bound=1)),
    (125, 739, Setting(records=4, walls=(1,), mode="keyed", buffer=3, cancel=True, bound=1)),
    (428, 1093, Setting(retries=1, cancel=True, bound=1)),
    (132, 844, Setting(retries=1, fails=True, sets_variable=True, cancel=True, bound=0)),
    (1156, 3319, Setting(retries=1, fails=True, gate="one", bound=1)),
    (428, 1949, Setting(retries=1, fails=True, on_error="raise", gate="one", bound=0)),
    (320, 840, Setting(gate="one", interrupt=True, is_eager=True, bound=0)),
    (316, 1211, Setting(records=3, buffer=3, timeout=3.0, retries=1, fails=True, group=2, bound=1)),
    (314, 985, Setting(records=3, capacity=1, fails=True, on_error="dead_letter", is_slow=True, cancel=True, bound=1)),
    (180, 739, Setting(records=3, capacity=1, timeout=2.0, on_error="raise", bound=1)),
]
# fmt: on


def by_setting(table: list[tuple[int, int, Any]]) -> pytest.MarkDecorator:
    """Run a test for each row of a table. Those with many states are variations."""
    marks = {True: (), False: pytest.mark.variation}
    rows = [pytest.param(*row, id=str(row[2]), marks=marks[row[1] <= FEW_STATES]) for row in table]
    return pytest.mark.parametrize(("schedules", "states", "setting"), rows)


@by_setting(PLAIN)
def test_outputs_come_once_and_in_order_and_nothing_waits_that_could_go_on(
    schedules: int, states: int, setting: Setting
) -> None:
    explore_world(setting).check(setting, schedules, states)


@by_setting(ATTEMPTS)
def test_attempts_fail_time_out_and_are_retried_at_every_moment(schedules: int, states: int, setting: Setting) -> None:
    explore_world(setting).check(setting, schedules, states)


@by_setting(STOPPED)
def test_whatever_ends_the_block_nothing_is_lost_and_nothing_stays_alive(
    schedules: int, states: int, setting: Setting
) -> None:
    explore_world(setting).check(setting, schedules, states)


@by_setting(GATES_AND_GROUPS)
def test_calls_pass_gates_and_groups_in_every_order(schedules: int, states: int, setting: Setting) -> None:
    explore_world(setting).check(setting, schedules, states)


@pytest.mark.thorough
@by_setting(LONGER)
def test_larger_worlds_keep_the_promises(schedules: int, states: int, setting: Setting) -> None:
    explore_world(setting).check(setting, schedules, states)
