"""The steps of docs/tutorial/build-it.md print what it shows, and its exercises what their solutions say."""

from __future__ import annotations

import tomllib
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.docs.script import script

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
EXERCISES = tomllib.loads((EXAMPLES / "exercises.toml").read_text(encoding="utf-8"))["exercise"]


def printed(source: str) -> str:
    """What its `main` prints."""
    names: dict[str, Any] = {"__name__": __name__}
    with redirect_stdout(StringIO()) as out:
        exec(compile(source, "exercise", "exec", dont_inherit=True), names)
        trio.run(names["main"], clock=MockClock(autojump_threshold=0))
    return out.getvalue()


@pytest.mark.parametrize("name", [*(path.stem for path in sorted(EXAMPLES.glob("build_*.py"))), "heart"])
def test_a_step_prints_what_the_page_shows(name: str) -> None:
    source, output = ((EXAMPLES / name).with_suffix(suffix).read_text(encoding="utf-8") for suffix in (".py", ".out"))
    assert printed(source) == output


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise["script"])
def test_an_exercise_does_what_its_solution_says(exercise: dict[str, str]) -> None:
    source = (EXAMPLES / exercise["script"]).read_text(encoding="utf-8")
    line = exercise["line"].lstrip("\n")
    assert source.count(line) == 1
    changed = printed(source.replace(line, exercise["instead"].lstrip("\n")))
    assert changed == exercise["prints"].lstrip("\n")
    assert changed != printed(source)


def test_each_module_of_the_package_is_on_one_stair() -> None:
    build_it = script("build_it")
    modules = [module for names in build_it.STAIRS for module in build_it.modules_of(names)]
    assert sorted(modules) == sorted(build_it.PACKAGE.rglob("*.py"))
