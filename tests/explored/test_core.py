"""The pure core, in every interleaving of small settings: each keeps all that is promised (see `Core`).

A table has the number of steps that were taken (`schedules`), and of states, by setting. See `test_shell.py`.
"""

from __future__ import annotations

import pytest

from tests.explored.core import CoreSetting, explore_core
from tests.explored.test_shell import by_setting

pytestmark = pytest.mark.slow

Table = list[tuple[int, int, CoreSetting]]


# fmt: off
SMALL: Table = [
    (686, 292, CoreSetting(records=3, walls=(0,))),
    (844, 372, CoreSetting(records=3, walls=(0,), mode="unordered")),
    (554, 252, CoreSetting(records=3, walls=(0,), mode="keyed")),
    (439, 210, CoreSetting(records=3, walls=(0,), buffer=2, flatten=(2, 0, 2))),
    (1114, 507, CoreSetting(walls=(0,), mode="unordered", buffer=2, flatten=(2, 0), restores=1)),
    (736, 406, CoreSetting(timeout=1.0, retries=1)),
    (1350, 750, CoreSetting(timeout=3.0, retries=1, restores=1, is_urgent=True)),
    (540, 345, CoreSetting(walls=(0,), mode="unordered", timeout=2.0, retries=1, is_urgent=True)),
    (2190, 1227, CoreSetting(records=3, mode="keyed", retries=1, is_urgent=True)),
    (605, 317, CoreSetting(records=3, capacity=1, buffer=2, fails=True, has_dead_letters=True)),
    (1394, 676, CoreSetting(mode="unordered", fails=True, has_dead_letters=True, restores=1)),
    (1097, 606, CoreSetting(retries=1, fails=True, stops=1, is_urgent=True)),
    (1673, 719, CoreSetting(retries=1, gate="one", is_urgent=True)),
    (1701, 585, CoreSetting(records=3, mode="unordered", capacity=1, gate="one")),
    (3869, 1149, CoreSetting(gate="one", refuses=True)),
    (964, 287, CoreSetting(mode="unordered", gate="per key")),
    (2509, 777, CoreSetting(gate="one", stops=1)),
    (909, 412, CoreSetting(records=3, capacity=1, group=2)),
    (1477, 809, CoreSetting(mode="unordered", timeout=3.0, retries=1, group=2, is_urgent=True)),
    (2576, 1203, CoreSetting(mode="unordered", fails=True, group=2, group_split=True, gate="one", is_urgent=True)),
]
LONGER: Table = [
    (5907, 3279, CoreSetting(timeout=2.0, retries=1)),
    (6972, 1964, CoreSetting(records=3, mode="unordered", gate="per key")),
    (3520, 1043, CoreSetting(mode="unordered", gate="per key", stops=1)),
    (4075, 2369, CoreSetting(records=3, capacity=1, fails=True, group=2, group_split=True, is_urgent=True)),
    (7047, 2454, CoreSetting(retries=1, gate="one")),
    (5690, 2316, CoreSetting(retries=1, fails=True, stops=1)),
    (9274, 3376, CoreSetting(records=3, mode="keyed", fails=True, group=2, group_split=True)),
    (21619, 10188, CoreSetting(records=4, walls=(1,), retries=1, buffer=4, is_urgent=True)),
    (35559, 16759, CoreSetting(records=4, walls=(1,), mode="unordered", retries=1, buffer=4, is_urgent=True)),
    (23198, 10967, CoreSetting(records=4, walls=(1,), mode="keyed", retries=1, buffer=4, is_urgent=True)),
]
# fmt: on


@by_setting(SMALL)
def test_each_state_of_the_core_keeps_the_promises(schedules: int, states: int, setting: CoreSetting) -> None:
    explore_core(setting).check(setting, schedules, states)


@pytest.mark.thorough
@by_setting(LONGER)
def test_each_state_of_a_larger_core_keeps_the_promises(schedules: int, states: int, setting: CoreSetting) -> None:
    explore_core(setting).check(setting, schedules, states)
