"""The real operator, in every interleaving of small worlds: each keeps all that is promised (see `OperatorWorld`).

A table has the number of schedules and of states by world. They are the same on each machine, and a number that changes
is a changed behaviour: look at it before you write the new one into the table.
"""

from __future__ import annotations

from functools import partial

import pytest

from tests.explored.loom import Exploration, explore
from tests.explored.world import IGNORED, OperatorWorld, Setting

Table = list[tuple[int, int, Setting]]


def explored(setting: Setting) -> Exploration:
    return explore(partial(OperatorWorld, setting), bound=setting.bound, ignored=IGNORED)


def by_setting(table: Table) -> list[object]:
    return [pytest.param(*row, id=str(row[2])) for row in table]


# fmt: off
PLAIN: Table = [
    (12, 29, Setting(is_eager=True)),
    (13, 32, Setting(walls=(0,), mode="unordered", is_eager=True)),
    (40, 159, Setting(records=4, walls=(1,), is_slow=True)),
    (98, 478, Setting(records=4, walls=(1,), mode="unordered", capacity=3, buffer=4, bound=1)),
    (40, 228, Setting(records=4, walls=(1,), mode="keyed", capacity=3, buffer=4, close_after=2, bound=1)),
    (22, 122, Setting(records=7, capacity=1, buffer=6, is_slow=True, bound=0)),
    (44, 289, Setting(records=9, capacity=1, buffer=3, mode="unordered", is_slow=True, bound=1)),
    (33, 166, Setting(records=3, source="slowly")),
    (35, 191, Setting(records=3, source="put", mode="keyed", is_slow=True, bound=1)),
    (41, 103, Setting(records=3, consumers=2, is_slow=True)),
    (304, 380, Setting(records=3, consumers=2, is_slow=True, is_eager=True, bound=1)),
    (259, 833, Setting(records=4, consumers=2, mode="unordered", flatten=(2, 0, 1, 1), is_slow=True, bound=1)),
    (10, 55, Setting(records=3, walls=(1,), mode="unordered", flatten=(2, 0, 2))),
    (70, 326, Setting(records=5, is_slow=True, is_accounted=True, bound=1)),
]
ATTEMPTS: Table = [
    (23, 91, Setting(capacity=1, retries=1, fails=True, sets_variable=True)),
    (316, 782, Setting(timeout=3.0, retries=1, fails=True)),
    (140, 409, Setting(records=3, timeout=3.0, is_crowded=True, bound=1)),
    (161, 574, Setting(timeout=3.0, retries=1, is_crowded=True, bound=0)),
    (18, 59, Setting(capacity=1, timeout=3.0, is_crowded=True)),
    (327, 2008, Setting(records=3, mode="keyed", buffer=3, timeout=3.0, retries=1, bound=0)),
    (42, 274, Setting(timeout=2.0, retries=1, unwinds_slowly=True, bound=0)),
    (10, 69, Setting(capacity=1, timeout=2.0, unwinds_slowly=True, bound=1)),
    (79, 137, Setting(fails=True, on_error="handler", is_eager=True)),
    (91, 93, Setting(fails=True, on_error="dead_letter", is_eager=True)),
    (212, 922, Setting(
        records=3, walls=(1,), mode="unordered", fails=True, on_error="dead_letter", is_slow=True, bound=0)),
    (97, 562, Setting(records=3, capacity=1, retries=1, fails=True, is_slow=True, is_accounted=True, bound=0)),
    (156, 793, Setting(capacity=1, timeout=3.0, retries=1, fails=True, is_slow=True, is_accounted=True, bound=1)),
]
STOPPED: Table = [
    (241, 489, Setting(cancel=True, is_eager=True, bound=1)),
    (261, 587, Setting(interrupt=True, is_eager=True, bound=1)),
    (30, 63, Setting(records=1, unwinds_slowly=True, cancel=True, is_eager=True)),
    (75, 246, Setting(unwinds_slowly=True, cancel=True, bound=2)),
    (66, 451, Setting(retries=1, cancel=True, bound=0)),
    (146, 405, Setting(records=3, source="put", cancel=True, bound=2)),
    (198, 620, Setting(records=3, source="put", interrupt=True, is_eager=True, bound=0)),
    (153, 754, Setting(records=4, walls=(1,), mode="keyed", buffer=3, cancel=True, bound=1)),
    (63, 51, Setting(records=3, walls=(1,), flatten=(2, 0, 1), stop_after=1)),
    (73, 267, Setting(
        records=3, walls=(0, 1), mode="unordered", flatten=(1, 0, 2), source="slowly", stop_after=2, bound=1)),
    (37, 85, Setting(records=3, mode="unordered", buffer=3, close_after=1)),
    (261, 522, Setting(fails=True, on_error="raise", is_eager=True, bound=1)),
    (35, 370, Setting(records=3, capacity=1, timeout=2.0, on_error="raise", bound=0)),
    (104, 549, Setting(records=3, capacity=1, fails=True, on_error="dead_letter", is_slow=True, cancel=True, bound=0)),
    (54, 619, Setting(records=3, fails=True, on_error="dead_letter", interrupt=True, bound=0)),
    (47, 228, Setting(records=3, consumers=2, is_slow=True, cancel=True, bound=0)),
]
GATES_AND_GROUPS: Table = [
    (19, 42, Setting(gate="one")),
    (192, 733, Setting(records=4, capacity=3, buffer=4, gate="one", bound=0)),
    (7, 57, Setting(records=3, capacity=1, buffer=3, gate="one", is_accounted=True, bound=0)),
    (428, 1310, Setting(retries=1, fails=True, gate="one", is_accounted=True, bound=0)),
    (53, 142, Setting(timeout=2.0, gate="one", is_crowded=True, bound=0)),
    (64, 316, Setting(records=3, capacity=1, gate="one", refuses=True, bound=1)),
    (49, 367, Setting(records=3, gate="one", refuses=True, stop_after=1, bound=0)),
    (128, 313, Setting(gate="one", cancel=True, bound=1)),
    (164, 373, Setting(gate="per key", cancel=True, bound=1)),
    (56, 300, Setting(records=3, capacity=1, buffer=3, gate="per key", refuses=True, bound=0)),
    (26, 83, Setting(records=3, buffer=3, group=2, gate="one", bound=1)),
    (72, 228, Setting(records=3, buffer=3, fails=True, group=2, gate="per key", bound=0)),
    (19, 77, Setting(records=3, capacity=1, buffer=3, fails=True, group=2, group_split=True)),
    (20, 148, Setting(records=3, capacity=1, buffer=3, retries=1, fails=True, group=2, group_split=True, bound=0)),
    (89, 381, Setting(records=3, buffer=3, timeout=3.0, fails=True, group=2, group_split=True, bound=0)),
    (108, 417, Setting(records=3, capacity=1, buffer=3, retries=1, fails=True, group=2, cancel=True, bound=1)),
    (16, 51, Setting(fails=True, on_error="dead_letter", group=2, stop_after=1, bound=1)),
]
LONGER: Table = [
    (384, 1557, Setting(retries=1, gate="per key", bound=0)),
    (1447, 6177, Setting(records=3, mode="keyed", buffer=3, retries=1, fails=True, bound=1)),
    (1336, 5699, Setting(records=3, buffer=3, retries=1, fails=True, is_accounted=True, bound=0)),
    (286, 645, Setting(capacity=1, timeout=3.0, retries=1, on_error="raise")),
    (488, 760, Setting(cancel=True, is_eager=True, bound=2)),
    (506, 1122, Setting(retries=1, cancel=True, bound=1)),
    (120, 783, Setting(retries=1, fails=True, sets_variable=True, cancel=True, bound=0)),
    (1004, 2619, Setting(retries=1, fails=True, gate="one", bound=1)),
    (402, 1762, Setting(retries=1, fails=True, on_error="raise", gate="one", bound=0)),
    (308, 750, Setting(gate="one", interrupt=True, is_eager=True, bound=0)),
    (273, 950, Setting(records=3, buffer=3, timeout=3.0, retries=1, fails=True, group=2, bound=1)),
    (340, 1097, Setting(records=3, capacity=1, fails=True, on_error="dead_letter", is_slow=True, cancel=True, bound=1)),
    (180, 739, Setting(records=3, capacity=1, timeout=2.0, on_error="raise", bound=1)),
]
# fmt: on


@pytest.mark.parametrize(("schedules", "states", "setting"), by_setting(PLAIN))
def test_outputs_come_once_and_in_order_and_nothing_waits_that_could_go_on(
    schedules: int, states: int, setting: Setting
) -> None:
    explored(setting).check(setting, schedules, states)


@pytest.mark.parametrize(("schedules", "states", "setting"), by_setting(ATTEMPTS))
def test_attempts_fail_time_out_and_are_retried_at_every_moment(schedules: int, states: int, setting: Setting) -> None:
    explored(setting).check(setting, schedules, states)


@pytest.mark.parametrize(("schedules", "states", "setting"), by_setting(STOPPED))
def test_whatever_ends_the_block_nothing_is_lost_and_nothing_stays_alive(
    schedules: int, states: int, setting: Setting
) -> None:
    explored(setting).check(setting, schedules, states)


@pytest.mark.parametrize(("schedules", "states", "setting"), by_setting(GATES_AND_GROUPS))
def test_calls_pass_gates_and_groups_in_every_order(schedules: int, states: int, setting: Setting) -> None:
    explored(setting).check(setting, schedules, states)


@pytest.mark.thorough
@pytest.mark.parametrize(("schedules", "states", "setting"), by_setting(LONGER))
def test_larger_worlds_keep_the_promises(schedules: int, states: int, setting: Setting) -> None:
    explored(setting).check(setting, schedules, states)
