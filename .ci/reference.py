"""Writes the pages of docs/reference/api from the docstrings. Cog runs this: see the recipe `pages` in the justfile.

A page includes what belongs to it with a comment, which rendered Markdown does not show:

    <!-- [[[cog import reference; cog.outl(reference.page("operator.md"))]]] -->
    <!-- [[[end]]] -->

`NAMES` has the names of each page. A docstring that does not fit its object is an error.
"""

import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

WIDTH = 88
LONGEST_DEFAULT = 40
FEWEST_OPTIONS = 4  # that a signature leaves to another entry
LONGEST_COPY = 200  # characters of a docstring that may stand twice on a page
# By page: modules, and their public names in the order of the page; none are named where the page has all of them
NAMES = {
    "operator.md": {
        "trio_asyncio_io": (
            "ordered_wait unordered_wait keyed_wait AsyncWaitOperator Options AsyncFunction Results "
            "DeadLetter LostError NotAsyncError ElementTimeoutError AttemptTimeoutError shared lingering"
        )
    },
    "elements.md": {"trio_asyncio_io": "StreamRecord Watermark assign_watermarks"},
    "queues.md": {"trio_asyncio_io.queues": ""},
    "statistics.md": {"trio_asyncio_io": "Statistics Histogram Verdict Totals Snapshot SnapshotElement SnapshotError"},
    "retries.md": {
        "trio_asyncio_io": ("RetryStrategy FixedDelay ExponentialBackoff DelayList RetryBudget transient retry_after")
    },
    "gates.md": {"trio_asyncio_io.gates": ""},
    "policies.md": {"trio_asyncio_io.policies": ""},
    "adapters.md": {"trio_asyncio_io.adapters": ""},
    "checkpoints.md": {"trio_asyncio_io.checkpoints": ""},
    "observers.md": {
        "trio_asyncio_io": "Observer",
        "trio_asyncio_io.blocking": "",
        "trio_asyncio_io.opentelemetry": "",
        "trio_asyncio_io.progress": "",
        "trio_asyncio_io.report": "",
        "trio_asyncio_io.trace": "",
    },
    "rehearsal.md": {"trio_asyncio_io.rehearsal": ""},
    "testing.md": {"trio_asyncio_io.testing": "", "trio_asyncio_io.embedding": ""},
    "udfs.md": {
        "udfs": (
            "async_pandas_udf AsyncPandasUDF ordered_wait unordered_wait keyed_wait CarryOver ClusterBudget "
            "ClusterRate Memo idempotency_key summary explain rehearse JobForecast ResultTypeError CarriedTooLongError "
            "ClusterLimitError HangUpError MemoError"
        ),
        "udfs.progress": "",
    },
    "http.md": {"udfs.http": "", "udfs.http_columns": "", "udfs.http.httpx2": ""},
}
# Public classes that only the packages make, and whose signatures are long
WITHOUT_SIGNATURE = {"Statistics", "Totals"}
# Public methods and properties for other modules of their package, for Spark or for Trio
HIDDEN = {
    "AsyncPandasUDF.evalType",
    "AsyncPandasUDF.func",
    "AsyncPandasUDF.returnType",
    "BlockedLoop.after_io_wait",
    "BlockedLoop.after_run",
    "BlockedLoop.before_io_wait",
    "BlockedLoop.before_run",
    "Entry.next_output",
    "NotAsyncError.for_result",
    "Options.bound",
    "StackTransport.is_watched",
    "Totals.allowed",
    "Totals.call_seconds",
    "Totals.first_calls",
    "Totals.in_flight",
    "Totals.mean_latency",
    "Totals.of_calls",
    "Totals.of_run",
    "Totals.of_supply",
    "Totals.size",
    "Totals.slot_wait_share",
    "Totals.slots_busy",
    "Totals.started_at_once",
    "from_asyncio.wrapped",
    "from_callback.wrapped",
    "from_future.wrapped",
    "in_thread.wrapped",
}
SECTION = re.compile(r"^(Args|Attributes|Example|Raises|Returns|Semantics|Yields):\n((?:(?: .*)?\n)*)", re.MULTILINE)
# What a description says of a default, which stands in the signature above it
DEFAULT = re.compile(r" \(the default\)|[;,] [\d.,]+ by default(?=[.;])| (?:False|True|None) by default\.")
# (parameter, default, meaning), ("Raises", text), a docstring, a name or a member -> the first entry of a page with it
Described: TypeAlias = dict[Any, str]
ENTRY = re.compile(r"^(\*{0,2}[\w.]+(?:, [\w.]+)*): ?(.*(?:\n(?: .*)?)*)", re.MULTILINE)


def page(name: str) -> str:
    """The text of a page."""
    return "\n".join(_parts(name))


def _parts(page: str) -> Iterator[str]:
    described: Described = {}
    for module, names in NAMES[page].items():
        if not names:
            yield f"\n## {module}\n\n{_body(importlib.import_module(module), _linked(module), described, module)}"
        for name in names_of(module, names):
            yield from _entry(module, name, 2 if names else 3, described)


def names_of(module: str, names: str) -> list[str]:
    """The names of a page in one module."""
    return names.split() or list(importlib.import_module(module).__all__)


def _entry(module: str, name: str, depth: int, described: Described) -> Iterator[str]:
    public = getattr(importlib.import_module(module), name)
    linked = _linked(module)
    if not (inspect.isclass(public) or inspect.isfunction(public)):
        return
    yield f"\n{'#' * depth} {name}\n"
    if described.setdefault(name, module) != module:
        yield f"As [`{described[name]}.{name}`](#{name.lower()}).\n"
        return
    yield _signature(name, public, described)
    yield _body(public, linked, described, name)
    inherited: dict[str, list[str]] = {}
    for key, member in _members(public):
        if described.setdefault(member, name) != name:
            inherited.setdefault(described[member], []).append(f"`{key}`")
            continue
        yield f"\n{'#' * (depth + 1)} {name}.{key}\n"
        if not isinstance(member, property):
            yield _signature(key, member, described)
        yield _body(member, linked, described, f"{name}.{key}")
    for other, keys in inherited.items():
        yield f"\nAs in [`{other}`](#{other.lower()}): {', '.join(keys)}.\n"


def _members(public: Any) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class that no public class above it documents."""
    if not inspect.isclass(public) or issubclass(public, tuple):
        return
    classes = [each for each in public.__mro__ if each.__module__.startswith(("trio_asyncio_io", "udfs"))]
    shown = [each for each in classes if each is public or not _is_public(each)]
    elsewhere = {key for each in classes if each not in shown for key in vars(each)}
    for key in dict.fromkeys(key for each in shown for key in vars(each) if key not in elsewhere):
        member = inspect.getattr_static(public, key)
        member = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        is_shown = isinstance(member, property) or inspect.isfunction(member)
        is_shown &= not key.startswith("_") and f"{public.__name__}.{key}" not in HIDDEN
        if is_shown and inspect.getdoc(member):
            yield key, member


def _is_public(each: type) -> bool:
    return any(each.__name__ in importlib.import_module(module).__all__ for names in NAMES.values() for module in names)


# --- signatures -----------------------------------------------------------------------------------------------------


def _signature(name: str, public: Any, described: Described) -> str:
    """The signature in a fence. It has the name of an entry in place of the options that this entry describes."""
    is_made = name not in WITHOUT_SIGNATURE and re.search(r"^Args:$", inspect.getdoc(public) or "", re.MULTILINE)
    if inspect.isclass(public) and not is_made:
        return ""  # only the packages make one
    try:
        signature = inspect.signature(public)
    except ValueError:
        return ""
    elsewhere = {row[0].strip("`"): described.get(row, name) for row in _rows(public)}
    homes = {
        each.name: elsewhere[each.name]
        for each in signature.parameters.values()
        if each.kind is each.KEYWORD_ONLY and each.default is not each.empty and elsewhere.get(each.name, name) != name
    }
    if len(homes) < FEWEST_OPTIONS:
        homes = {}
    parameters = [f"{_parameter(each)}," for each in _marked(signature) if getattr(each, "name", "*") not in homes]
    if homes:
        parameters.append(f"# and the options of {', '.join(dict.fromkeys(homes.values()))}")
    returns = f" -> {_annotation(signature.return_annotation)}"
    if inspect.isclass(public) or signature.return_annotation is signature.empty:
        returns = ""
    start = f"{'async ' if inspect.iscoroutinefunction(public) else ''}{name}("
    line = f"{start}{' '.join(parameters).removesuffix(',')}){returns}"
    if len(line) > WIDTH or homes:
        line = f"{start}\n{''.join(f'    {each}{chr(10)}' for each in parameters)}){returns}"
    return f"```python\n{line}\n```\n"


def _marked(signature: inspect.Signature) -> Iterator[inspect.Parameter | str]:
    """The parameters without `self`, and the markers `*` and `/`."""
    parameters = [each for each in signature.parameters.values() if each.name not in {"self", "cls"}]
    for position, each in enumerate(parameters):
        before = parameters[position - 1].kind if position else each.POSITIONAL_OR_KEYWORD
        if each.kind is each.KEYWORD_ONLY and before not in {each.KEYWORD_ONLY, each.VAR_POSITIONAL}:
            yield "*"
        yield each


def _parameter(each: inspect.Parameter | str) -> str:
    if isinstance(each, str):
        return each
    stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
    text = stars + each.name
    if each.annotation is not each.empty:
        text += f": {_annotation(each.annotation)}"
    return text if each.default is each.empty else f"{text} = {_value(each.default)}"


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _value(default: Any) -> str:
    if inspect.isclass(default) or inspect.isroutine(default):
        return str(default.__name__)
    if isinstance(default, str):
        return f'"{default}"'
    text = repr(default)
    return "..." if text.startswith("<") or len(text) > LONGEST_DEFAULT else text.replace("inf", "math.inf")


# --- docstrings -----------------------------------------------------------------------------------------------------


def _body(public: Any, linked: Callable[[str], str], described: Described, name: str) -> str:
    """A docstring as Markdown. What another entry of the page says in the same words is a link to it."""
    text = f"{inspect.getdoc(public) or ''}\n"
    if len(text) > LONGEST_COPY and (home := described.setdefault(text, name)) != name:
        return f"As {_heading(home)}.\n"
    parts = []
    end = 0
    for found in SECTION.finditer(text):
        parts.append(linked(text[end : found.start()]))
        section = textwrap.dedent(found[2]).strip("\n")
        if found[1] == "Args":
            parts.append(_parameters(public, linked, described, name))
        elif found[1] == "Raises" and (home := described.setdefault(("Raises", section), name)) != name:
            parts.append(f"**Raises.** As {_heading(home)}.")
        else:
            parts.append(_section(found[1], section, linked))
        end = found.end()
    parts.append(linked(text[end:]))
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def _section(title: str, text: str, linked: Callable[[str], str]) -> str:
    if title == "Example":
        return f"```python\n{text}\n```"
    if title in {"Returns", "Yields"}:
        return f"**{title}.** {linked(_joined(text))}"
    if title == "Semantics":
        rows = re.findall(r"^\* (\*\*.*?\*\*)(?:: | (?!and))(.*(?:\n .*)*)|^\* (.*(?:\n .*)*)", text, re.MULTILINE)
        return _table(["semantics", ""], [[_upper(name), linked(_joined(rest or whole))] for name, rest, whole in rows])
    entries = [(name, linked(_joined(rest))) for name, rest in ENTRY.findall(text)]
    if title == "Raises":
        return _table(["raises", "when"], [[f"`{name}`", _upper(rest)] for name, rest in entries])
    return _table(["attribute", "meaning"], [[f"`{name}`", rest] for name, rest in entries])


def _rows(public: Any) -> list[tuple[str, str, str]]:
    """The name, the default and the description of each parameter in a docstring."""
    defaults = _defaults(public)
    sections = {found[1]: textwrap.dedent(found[2]) for found in SECTION.finditer(f"{inspect.getdoc(public) or ''}\n")}
    entries = ENTRY.findall(sections.get("Args", "").strip("\n"))
    return [(f"`{each}`", _shown(each, defaults), _joined(rest)) for each, rest in entries]


def _parameters(public: Any, linked: Callable[[str], str], described: Described, name: str) -> str:
    """A table of the parameters, without those that another entry of the page describes in the same words."""
    rows = _rows(public)
    elsewhere: dict[str, list[str]] = {}
    for row in rows:
        if described.setdefault(row, name) != name:
            elsewhere.setdefault(described[row], []).append(row[0])
    new = [[row[0], DEFAULT.sub("", linked(row[2]))] for row in rows if described[row] == name]
    parts = [_table(["parameter", "meaning"], new)] if new else []
    for other, names in elsewhere.items():
        parts.append(f"As in {_heading(other)}: {', '.join(names)}.")
    return "\n\n".join(parts)


def _defaults(public: Any) -> dict[str, Any]:
    if isinstance(public, property) or inspect.ismodule(public):
        return {}
    return {each.name: each.default for each in inspect.signature(public).parameters.values()}


def _shown(name: str, defaults: dict[str, Any]) -> str:
    default = defaults.get(name, inspect.Parameter.empty)
    return "" if default is inspect.Parameter.empty else f"`{_value(default)}`"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _heading(name: str) -> str:
    """A link to an entry of the same page."""
    return f"[`{name}`](#{name.lower().replace('.', '')})"


def _joined(text: str) -> str:
    return " ".join(text.split())


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


# --- links ----------------------------------------------------------------------------------------------------------


def _linked(module: str) -> Callable[[str], str]:
    """A function that makes links of the public names in a docstring of this module."""
    targets: dict[str, str] = {}
    package = module.partition(".")[0]
    for path, modules in sorted(NAMES.items(), key=lambda item: package not in " ".join(item[1])):
        for other, names in modules.items():
            for name in names_of(other, names):
                for label in (name, f"{other}.{name}"):
                    targets.setdefault(label, f"{path}#{name.lower()}")
    return partial(_with_links, targets)


def _with_links(targets: dict[str, str], text: str) -> str:
    return re.sub(
        r"(?<!\[)`([\w.]+)`",
        lambda found: f"[{found[0]}]({targets[found[1]]})" if found[1] in targets else found[0],
        text,
    )
