"""The tests of a module notice small changes of it, except those in `survivors.toml`, each with its reason.

The sample is the same each time, and a change of the code changes only its own part: MUTATION_SEED=2 draws another one.
To judge a survivor, write the test that is missing, or add its name with the reason: equivalent, or not worth a test.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import monotonic

import pytest

from tests.mutation.mutants import Mutant, mutants_of

pytestmark = [pytest.mark.soak, pytest.mark.processes]

ROOT = Path(__file__).parents[2]
COUNT = int(os.environ.get("MUTATION_COUNT", "30"))  # mutants of each area
SEED = os.environ.get("MUTATION_SEED", "1")
UNCHANGED = Path("tests/mutation/mutants.py")  # a module, to run the tests without a mutant
SLOWER = 5  # times the tests without a mutant, and a minute: a mutant that takes longer is noticed

# By area, a folder or a module: its tests. Those with the name of the module run first, and all if these notice nothing
AREAS = {
    "trio_asyncio_io/_account": ("tests/core", "tests/gates", "tests/operator", "tests/properties"),
    "trio_asyncio_io/_core": ("tests/core", "tests/gates", "tests/operator", "tests/properties"),
    "trio_asyncio_io/_values": ("tests/core", "tests/gates", "tests/operator"),
    "trio_asyncio_io/_operator/ends.py": ("tests/operator", "tests/gates", "tests/policies"),
    "trio_asyncio_io/_operator/results.py": ("tests/operator", "tests/policies"),
    "trio_asyncio_io/_operator/worker.py": ("tests/operator", "tests/gates", "tests/policies"),
    "trio_asyncio_io/gates": ("tests/gates", "tests/operator"),
    "trio_asyncio_io/policies": ("tests/policies",),
    "trio_asyncio_io/rehearsal": ("tests/rehearsal",),
    "udfs/_limits": ("tests/udfs/limits", "tests/udfs/trio_thread"),
    "udfs/_memo": ("tests/udfs/memo", "tests/udfs/spark_thread"),
    "udfs/_spark_thread": ("tests/udfs/spark_thread", "tests/udfs/memo"),
    "udfs/http": ("tests/udfs/http", "tests/udfs/http_columns"),
}
SELECTED = "not (spark or processes or slow or thorough or soak)"


@pytest.mark.parametrize("area", AREAS)
def test_each_mutant_is_noticed(area: str, tmp_path: Path) -> None:
    judged = tomllib.loads((Path(__file__).parent / "survivors.toml").read_text())
    survivors = [
        f"{each} (line {each.line})"
        for each in sample(area)
        if each.name not in judged.get(str(each.path), {}) and survives(each, AREAS[area], tmp_path)
    ]
    assert not survivors, "\n".join([f"{len(survivors)} mutants survive:", *survivors])


def sample(area: str) -> list[Mutant]:
    """Mutants that depend on nothing but the seed and themselves."""
    place = ROOT / area
    paths = [path.relative_to(ROOT) for path in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    assert paths, f"{area} has no module"
    only = os.environ.get("MUTATION_ONLY", "")
    found = [mutant for path in paths if only in str(path) for mutant in mutants_of(path)]
    return sorted(found, key=lambda each: sha256(f"{SEED} {each}".encode()).digest())[:COUNT]


def survives(mutant: Mutant, folders: tuple[str, ...], scratch: Path) -> bool:
    """Whether all tests pass: those of the module first, then those of its area."""
    stem = mutant.path.stem.lstrip("_")
    own = tuple(
        str(path.relative_to(ROOT)) for folder in folders for path in sorted((ROOT / folder).glob(f"test_{stem}*.py"))
    )
    source = scratch / "mutant.py"
    for tests in filter(None, (own, folders)):
        source.write_text(mutant.source)
        if not passes(mutant.path, source, tests, 60 + SLOWER * duration(tests)):
            return False
    return True


@cache
def duration(tests: tuple[str, ...]) -> float:
    """The seconds that the tests take without a mutant."""
    began = monotonic()
    assert passes(UNCHANGED, UNCHANGED, tests), f"{tests} fail without a mutant"
    return monotonic() - began


def passes(module: Path, source: Path, tests: tuple[str, ...], limit: float | None = None) -> bool:
    """Whether all of these tests pass within the limit, in seconds, with this source of the module."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "-m", SELECTED]
    command = [sys.executable, "-m", "tests.mutation", str(module), str(source), *options, *tests]
    storage = {"HYPOTHESIS_STORAGE_DIRECTORY": str(source.parent / "hypothesis")} if source != module else {}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | storage,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
