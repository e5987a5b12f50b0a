"""The reference has every public name, and shows docstrings as they are meant."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path

import griffe
import pytest

from tests.docs.public import PUBLIC
from tests.docs.script import script

docstrings = script("docstrings")


def test_each_public_name_is_in_one_page() -> None:
    """If this fails, add the name to a page of docs/reference/api."""
    counts = Counter(docstrings.documented())
    assert {name for name in PUBLIC if counts[name] != 1} == set()


def test_each_member_that_is_left_out_exists() -> None:
    classes = {public.__name__: public for public in PUBLIC.values() if inspect.isclass(public)}
    left_out = [each.partition(".") for each in sorted(docstrings.HIDDEN)]
    assert [(owner, name) for owner, _, name in left_out if name not in dir(classes[owner])] == []


def test_no_docstring_describes_a_parameter_that_does_not_exist() -> None:
    wrong = {}
    for name, public in PUBLIC.items():
        section = (inspect.getdoc(public) or "").partition("Args:\n")[2].partition("\n\n")[0]
        described = re.findall(r"^    (\w+): ", section, re.MULTILINE)
        known = inspect.signature(public).parameters if described else {}
        if unknown := [each for each in described if each not in known]:
            wrong[name] = unknown
    assert wrong == {}


def test_no_sentence_about_a_result_is_shown_as_its_type() -> None:
    """Griffe takes what stands before the first colon of `Returns:` for the type."""
    wrong = []
    for name, public in PUBLIC.items():
        members = vars(public).items() if inspect.isclass(public) else []
        for member, value in [("", public), *members]:
            line = (inspect.getdoc(value) or "").partition("Returns:\n")[2].partition("\n")[0]
            if ": " in line and not member.startswith("_"):
                wrong.append(f"{name}.{member}".rstrip("."))
    assert wrong == []


MODULE = '''
def fetch(url, **arguments):
    """Fetch a struct<a int>, as `Cache` does.

        `Cache`    is code here

    Args:
        url: Its `address<x>`.
        And the other arguments, as for `Cache`.

    Example:
        fetch("x")
    """


class Cache:
    """A cache.

    Example:
        >>> Cache()
    """

    def bound(self):
        """For other modules."""
'''
FETCH = """\
Fetch a struct&lt;a int>, as [`Cache`][made.Cache] does.

    `Cache`    is code here

The parameters are those below, and the other arguments, as for [`Cache`][made.Cache].

Args:
    url: Its `address<x>`.

Examples:
    ```python
    fetch("x")
    ```
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> griffe.Module:
    """A module, read with the extension."""
    monkeypatch.setattr(docstrings, "documented", lambda: ["made.fetch", "made.Cache"])
    monkeypatch.setattr(docstrings, "HIDDEN", {"Cache.bound"})
    (tmp_path / "made.py").write_text(MODULE)
    extensions = griffe.load_extensions(docstrings.Docstrings)
    module = griffe.load("made", search_paths=[tmp_path], extensions=extensions)
    assert isinstance(module, griffe.Module)
    return module


def test_a_docstring_has_links_fences_and_a_sentence_for_options_of_another_function(made: griffe.Module) -> None:
    docstring = made["fetch"].docstring
    assert docstring.value.rstrip("\n") == FETCH.rstrip("\n")


def test_a_session_becomes_an_example_and_a_member_for_other_modules_is_left_out(made: griffe.Module) -> None:
    cache = made["Cache"]
    assert "Examples:\n    >>> Cache()" in cache.docstring.value
    assert "bound" not in cache.members


def test_a_function_that_describes_options_has_the_signature_that_help_shows() -> None:
    loaded = griffe.load("udfs", extensions=griffe.load_extensions(docstrings.Docstrings))
    assert "capacity" in {each.name for each in loaded["_dataframe.ordered_wait"].parameters}


@pytest.mark.parametrize("name", ["ordered_wait", "unordered_wait", "keyed_wait"])
def test_an_operator_has_its_options_in_place_of_an_overload_for_each_type(name: str) -> None:
    loaded = griffe.load("trio_asyncio_io", extensions=griffe.load_extensions(docstrings.Docstrings))
    function = loaded["_operator.stream"][name]
    assert {"capacity", "restore"} <= {each.name for each in function.parameters}
    assert not function.overloads
    assert "Args:\n\n" not in function.docstring.value


def test_a_gate_has_no_members_that_only_the_operator_calls() -> None:
    loaded = griffe.load("trio_asyncio_io", extensions=griffe.load_extensions(docstrings.Docstrings))
    assert "delay" in loaded["_core.gate.Gate"].members
    assert "delay" not in loaded["gates._rate_limit.RateLimit"].members
    assert "spent" in loaded["gates._budget.Budget"].members


@pytest.mark.parametrize(
    ("name", "parameter"), [("Statistics", "completed"), ("Totals", "busy"), ("FixedDelay", "budget")]
)
def test_a_class_describes_the_parameters_that_it_has_in_common_with_another(name: str, parameter: str) -> None:
    loaded = griffe.load("trio_asyncio_io", extensions=griffe.load_extensions(docstrings.Docstrings))
    assert f"\n    {parameter}: " in loaded[name].docstring.value


def test_a_class_has_its_options_in_place_of_an_overload_for_each_type() -> None:
    loaded = griffe.load("trio_asyncio_io", extensions=griffe.load_extensions(docstrings.Docstrings))
    function = loaded["_operator.operator.AsyncWaitOperator.__init__"]
    assert "capacity" in {each.name for each in function.parameters}
    assert not function.overloads


def test_the_amount_of_a_budget_is_positional_in_the_reference_as_it_is_in_python() -> None:
    """Griffe does not know `field(kw_only=False)` in a dataclass with `kw_only=True`."""
    loaded = griffe.load("udfs", extensions=griffe.load_extensions(docstrings.Docstrings))
    amount, weight = list(loaded["_limits.cluster_limits.ClusterBudget.__init__"].parameters)[1:3]
    assert amount.kind is griffe.ParameterKind.positional_or_keyword
    assert weight.kind is griffe.ParameterKind.keyword_only
