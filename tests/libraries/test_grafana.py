"""The Grafana dashboard of the docs, against the metrics that Prometheus gets from an observed operator."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import trio
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from trio_asyncio_io import FixedDelay, ordered_wait
from trio_asyncio_io.opentelemetry import OpenTelemetryObserver

DASHBOARD: dict[str, Any] = json.loads((Path(__file__).parents[2] / "docs" / "grafana.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [
    pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
    for panel in PANELS
    for target in panel["targets"]
]
# Grafana replaces these in a query
VARIABLES = {"$__rate_interval": "5m", "$operator": "weather"}

Samples = dict[str, list[dict[str, str]]]


@pytest.fixture(scope="module")
def samples() -> Iterator[Samples]:
    """The labels of each sample in Prometheus' text format, by its name, after a run with retries and errors."""

    async def lookup(value: str) -> str:
        if value == "b":
            raise OSError
        return value

    async def run() -> None:
        observer = OpenTelemetryObserver("weather", meter_provider=provider, spans=False)
        retry = FixedDelay(2, 0.0)
        options: Any = {"timeout": 5.0, "observer": observer, "retry": retry, "on_error": "skip"}
        async with ordered_wait("abc", lookup, **options) as results:
            assert [result async for result in results] == ["a", "c"]

    provider = MeterProvider([PrometheusMetricReader()])
    trio.run(run)
    samples: Samples = {}
    for family in text_string_to_metric_families(generate_latest(REGISTRY).decode()):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append(sample.labels)
    yield samples
    provider.shutdown()


def parsed(query: str) -> Any:
    for variable, value in VARIABLES.items():
        query = query.replace(variable, value)
    return promql_parser.parse(query)


def nodes(tree: Any) -> Iterator[Any]:
    """The node and those below it."""
    yield tree
    for name in ("expr", "lhs", "rhs", "vector_selector", "args"):
        child = getattr(tree, name, None)
        for each in child if isinstance(child, list) else [child]:
            if each is not None:
                yield from nodes(each)


def matches(labels: dict[str, str], matcher: Any) -> bool:
    value = labels.get(matcher.name, "")
    if matcher.op == promql_parser.MatchOp.NotEqual:
        return bool(value != matcher.value)
    assert matcher.op == promql_parser.MatchOp.Re
    return re.fullmatch(matcher.value, value) is not None


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_selects_samples_of_an_operator_and_groups_by_their_labels(samples: Samples, query: str) -> None:
    selectors = [node for node in nodes(parsed(query)) if isinstance(node, promql_parser.VectorSelector)]
    assert selectors
    for selector in selectors:
        found = [
            labels
            for labels in samples.get(selector.name, [])
            if all(matches(labels, matcher) for matcher in selector.matchers.matchers)
        ]
        assert found, f"nothing matches {selector.prettify()} among {sorted(samples)}"
    for node in nodes(parsed(query)):
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            for selector in nodes(node):
                if isinstance(selector, promql_parser.VectorSelector):
                    assert all(set(node.modifier.labels) <= labels.keys() for labels in samples[selector.name])


def test_the_choice_of_operators_lists_the_observed_ones(samples: Samples) -> None:
    choice = DASHBOARD["templating"]["list"][1]
    metric, label = choice["query"]["query"].removeprefix("label_values(").removesuffix(")").split(", ")
    assert {labels[label] for labels in samples[metric]} == {"weather"}


def test_each_panel_says_what_it_shows_and_in_which_unit() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for panel in PANELS:
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"] in {"ops", "s", "percentunit", "none"}


def test_panels_lie_side_by_side() -> None:
    cells = []
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells.append({(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])})
    assert all(one.isdisjoint(other) for one, other in combinations(cells, 2))
