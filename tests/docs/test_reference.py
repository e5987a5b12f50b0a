"""The reference has every public name, and shows what its docstring and its signature say."""

from __future__ import annotations

import math
import sys
from types import ModuleType

import pytest

from tests.docs.public import PUBLIC
from tests.docs.script import script

reference = script("reference")


def names() -> list[str]:
    return [
        f"{module}.{name}"
        for modules in reference.NAMES.values()
        for module, listed in modules.items()
        for name in reference.names_of(module, listed)
    ]


def test_each_public_name_is_in_one_page() -> None:
    """If this fails, add the name to NAMES in .ci/reference.py."""
    assert sorted(name for name in names() if name in PUBLIC) == sorted(PUBLIC)


async def fetch(url: str, *, limit: float = math.inf, mode: str = "a") -> bytes:
    """Fetch, for `Cache`.

    Semantics:
        * **Emits** when it can,
          and only then.
        * **Batch**: none.

    Args:
        url: Its address,
            a|b.
        limit: Bytes.
        mode: A word.

    Returns:
        The bytes.

    Raises:
        ValueError: It is wrong.

    Example:
        await fetch("x")
    """
    return f"{url} {limit} {mode}".encode()


class Cache:
    """A class that only a package makes."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("made")
    vars(module).update(fetch=fetch, Cache=Cache, __all__=["Cache", "fetch"])
    monkeypatch.setitem(sys.modules, "made", module)
    monkeypatch.setattr(reference, "NAMES", {"one.md": {"made": "fetch"}, "two.md": {"made": "Cache"}})


@pytest.mark.usefixtures("made")
def test_a_function_becomes_a_section_with_tables() -> None:
    assert (
        reference.page("one.md")
        == """
## fetch

```python
async fetch(url: str, *, limit: float = math.inf, mode: str = "a") -> bytes
```

Fetch, for [`Cache`](two.md#cache).

| semantics |  |
| --- | --- |
| **Emits** | when it can, and only then. |
| **Batch** | none. |

| parameter | meaning |
| --- | --- |
| `url` | Its address, a\\|b. |
| `limit` | Bytes. |
| `mode` | A word. |

**Returns.** The bytes.

| raises | when |
| --- | --- |
| `ValueError` | It is wrong. |

```python
await fetch("x")
```
"""
    )


@pytest.mark.usefixtures("made")
def test_a_class_that_users_do_not_make_has_no_signature() -> None:
    assert reference.page("two.md") == "\n## Cache\n\n\nA class that only a package makes.\n"


async def store(url: str, *, limit: float = 1.0) -> None:
    """Store.

    Args:
        url: Its address, a|b.
        limit: Bytes.
    """


@pytest.mark.usefixtures("made")
def test_a_parameter_that_two_functions_describe_in_the_same_words_is_shown_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules["made"], "store", store, raising=False)
    monkeypatch.setattr(reference, "NAMES", {"one.md": {"made": "fetch store"}})
    second = reference.page("one.md").partition("## store")[2]
    assert "As in [`fetch`](#fetch): `url`." in second
    assert "| `url` |" not in second
    assert "| `limit` | Bytes. |" in second, "it has another default"


async def copy(url: str, *, a: int = 1, b: int = 2, c: int = 3, d: int = 4, e: int = 5) -> None:
    """Copy.

    Args:
        url: Its address.
        a, b: The first two.
        c: The third.
        d: The fourth.
        e: Of this function.

    Raises:
        ValueError: It is wrong.
    """


async def move(url: str, *, c: int = 3, d: int = 4, e: int = 6) -> None:
    """Move.

    Args:
        url: Its address.
        c: The third.
        d: The fourth.
        e: Of this function.

    Raises:
        ValueError: It is wrong.
    """


@pytest.mark.usefixtures("made")
def test_options_and_errors_that_another_entry_describes_are_a_link_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "FEWEST_OPTIONS", 2)
    for each in (copy, move):
        monkeypatch.setattr(sys.modules["made"], each.__name__, each, raising=False)
    monkeypatch.setattr(reference, "NAMES", {"one.md": {"made": "fetch copy move"}})
    page = reference.page("one.md").partition("## copy")[2]
    assert "    url: str,\n    *,\n    e: int = 6,\n    # and the options of copy\n) -> None" in page
    assert page.count("**Raises.** As [`fetch`](#fetch).") == 2
    assert "| `ValueError`" not in page


class Base:
    def put(self) -> None:
        """Put."""


class One(Base):
    """The first."""


class Two(Base):
    """The second."""


@pytest.mark.usefixtures("made")
def test_a_method_that_two_classes_inherit_and_a_name_of_two_modules_are_shown_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = ModuleType("other")
    vars(other).update(fetch=fetch, __all__=["fetch"])
    monkeypatch.setitem(sys.modules, "other", other)
    for each in (Base, One, Two):
        monkeypatch.setattr(each, "__module__", "udfs.made")
        monkeypatch.setattr(sys.modules["made"], each.__name__, each, raising=False)
    monkeypatch.setattr(reference, "NAMES", {"one.md": {"made": "fetch One Two", "other": ""}})
    monkeypatch.setattr(reference, "_is_public", lambda each: each is not Base)
    page = reference.page("one.md")
    assert page.count("Put.") == 1
    assert page.count("Fetch, for") == 1
    assert "The second.\n\n\nAs in [`One`](#one): `put`.\n" in page
    assert "### fetch\n\nAs [`made.fetch`](#fetch).\n" in page
