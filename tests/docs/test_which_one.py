"""Each answer of the page which-one.html is a script that runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.which_one import SCRIPTS, scripts

FAILS = "    if value == 3:\n        raise ValueError('three')\n    return value"


def run(name: str, capsys: pytest.CaptureFixture[str], *, fails: bool = False) -> list[str]:
    """The lines that a script prints, with a call that takes no time."""
    script = SCRIPTS[name].replace("sleep(0.1)", "sleep(0)")
    assert script != SCRIPTS[name]
    if fails:
        assert "    return value" in script
        script = script.replace("    return value", FAILS)
    exec(compile(script, name, "exec"), {"__name__": "__main__"})
    return capsys.readouterr().out.splitlines()


def test_each_script_for_trio_prints_all_results(capsys: pytest.CaptureFixture[str]) -> None:
    expected = [str(number) for number in range(10)]
    for name in scripts("trio"):
        printed = run(name, capsys)
        assert (printed if " ordered " in name else sorted(printed)) == expected, name


def test_each_script_for_trio_does_what_its_answer_to_a_failure_says(capsys: pytest.CaptureFixture[str]) -> None:
    others = [str(number) for number in range(10) if number != 3]
    for name in scripts("trio"):
        if " stop " in name:
            with pytest.raises(ValueError, match="three"):
                run(name, capsys, fails=True)
            capsys.readouterr()  # what it printed before
            continue
        printed = sorted(run(name, capsys, fails=True))
        assert printed == (others if " skip " in name else sorted([*others, "3 ValueError('three')"])), name


def test_there_is_a_script_for_every_combination_of_answers() -> None:
    assert {where: len(scripts(where)) for where in ("rows", "column", "trio")} == {
        "rows": 54,
        "column": 18,
        "trio": 54,
    }


def test_the_scripts_pass_the_linter(tmp_path: Path) -> None:
    for number, script in enumerate(SCRIPTS.values()):
        (tmp_path / f"script_{number}.py").write_text(script, encoding="utf-8")
    rules = "--select=E,F,I,W,B,UP"
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        rules,
        "--line-length=88",
        "--output-format=concise",
    ]
    known = "--config=lint.isort.known-first-party=['trio_asyncio_io','udfs']"
    done = subprocess.run([*command, known, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
