"""The files for a public forge: they parse, and agree with the project's own files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import trio_asyncio_io

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
FORMS = sorted(set(ROOT.glob(".github/ISSUE_TEMPLATE/*.yml")) - {ROOT / ".github/ISSUE_TEMPLATE/config.yml"})
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps() -> list[dict[str, Any]]:
    jobs = [job for path in WORKFLOWS for job in load(path)["jobs"].values()]
    return [step for job in jobs for step in job.get("steps", [])]


def test_the_package_has_the_version_of_the_project() -> None:
    assert trio_asyncio_io.__version__ == PROJECT["version"]


def test_no_page_repeats_the_version_which_a_release_changes_in_two_files_only() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    version = re.compile(rf"(?<![\d.]){re.escape(PROJECT['version'])}(?![\d.])")
    assert [page for page in pages if page.parent.name != "maintain" and version.search(page.read_text("utf-8"))] == []


def test_the_description_on_a_package_index_installs_from_there() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for each in PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    install = text.partition("## Install")[2].partition("##")[0]
    assert re.findall(r"pip install (\S+)", install) == [
        "'trio-asyncio-io[spark,http]'",
        "'trio-asyncio-io[demo]'",
        "trio-asyncio-io",
    ]
    assert "yet" not in install
    assert "clone" not in install


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_few_permissions_and_every_job_a_time_limit(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert "uses" in job or job["timeout-minutes"] <= 90, name
        for needed in [job.get("needs", [])] if isinstance(job.get("needs"), str) else job.get("needs", []):
            assert needed in workflow["jobs"]


def test_each_action_is_pinned_to_a_commit_with_its_version_beside_it() -> None:
    used = re.findall(r"uses: ([^.\n].*)", "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS))
    assert used
    pinned = r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
    assert [each for each in used if not re.fullmatch(pinned, each)] == []


def test_a_job_runs_each_python_of_the_classifiers() -> None:
    pythons = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    installed = " ".join(
        str(step["with"]["python-version"]) for step in steps() if "python-version" in step.get("with", {})
    )
    assert set(pythons) - set(installed.split()) == set()


def test_each_command_of_a_workflow_exists() -> None:
    recipes = set(
        re.findall(r"^([a-z]\w*)[^:=\n]*:(?!=)", (ROOT / "justfile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    commands = [step["run"].split() for step in steps() if step.get("run", "").startswith(".ci/")]
    assert [".ci/run"] in commands
    for script, *arguments in commands:
        assert (ROOT / script).is_file()
        assert script != ".ci/just" or arguments[0] in recipes


def test_only_publishing_may_identify_itself_and_only_after_the_tests() -> None:
    jobs = load(ROOT / ".github/workflows/release.yml")["jobs"]
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["publish"]
    assert set(jobs["publish"]["needs"]) == {"tests", "build"}
    assert jobs["tests"]["uses"] == "./.github/workflows/tests.yml"


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_has_what_a_forge_requires(path: Path) -> None:
    form = load(path)
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) >= 1
    assert all(field["attributes"]["label"] for field in fields)
    assert {field["type"] for field in form["body"]} <= {"checkboxes", "dropdown", "input", "markdown", "textarea"}
    assert all(field["attributes"]["options"] for field in fields if field["type"] == "dropdown")
