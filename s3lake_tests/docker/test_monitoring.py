"""What Prometheus and Grafana are given: it parses, and names nothing that `s3lake metrics` does not tell."""

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml

from s3lake.lake.prometheus import METRICS
from s3lake_tests.docker.compose import DOCKER

ROOT = DOCKER.parent
LABELS = {f"s3lake_{name}": labels for name, (_, labels) in METRICS.items()}
DASHBOARD: dict[str, Any] = json.loads((DOCKER / "grafana/dashboard.json").read_text(encoding="utf-8"))
ALERTS = [
    rule
    for group in yaml.safe_load((DOCKER / "prometheus/alerts.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]


def expressions() -> Iterator[tuple[str, str]]:
    for rule in ALERTS:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        yield f"variable {variable['name']}", variable["query"]["query"]


EXPRESSIONS = dict(expressions())


def nodes(expression: Any) -> Iterator[Any]:
    """A parsed expression and all that it is made of."""
    yield expression
    for part in ("lhs", "rhs", "expr", "vector_selector"):
        if (inner := getattr(expression, part, None)) is not None:
            yield from nodes(inner)
    for argument in getattr(expression, "args", ()):
        yield from nodes(argument)


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS.keys())
def test_expression_names_metrics_and_labels_that_there_are(expression: str) -> None:
    # Grafana's own function; what it is asked of is Prometheus's.
    if values := re.fullmatch(r"label_values\((.*), (\w+)\)", expression):
        expression = values[1]
        assert values[2] in LABELS["s3lake_up"]
    parsed = list(nodes(promql_parser.parse(expression)))
    named = [node for node in parsed if isinstance(node, promql_parser.VectorSelector)]
    assert named
    for selector in named:
        labels = LABELS.get(selector.name, ())
        assert selector.name in LABELS or selector.name == "up"
        assert {matcher.name for matcher in selector.matchers.matchers} <= {*labels, "job", "instance"}
    by = [node.modifier for node in parsed if isinstance(node, promql_parser.AggregateExpr) and node.modifier]
    assert all({*one.labels} <= {label for selector in named for label in LABELS[selector.name]} for one in by)


def test_counters_are_only_shown_as_rates() -> None:
    counters = [name for name in LABELS if name.endswith("_total")]
    for expression in EXPRESSIONS.values():
        for name in counters:
            assert all(before in ("rate(", "increase(") for before in re.findall(rf"(\w*\(?){name}", expression))


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])
    assert [name for name in LABELS if not re.search(rf"\b{name}\b", shown)] == []


def test_alerts_name_what_is_wrong_and_are_documented() -> None:
    text = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    for rule in ALERTS:
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert f"`{rule['alert']}`" in text


def test_every_metric_is_documented_with_its_labels() -> None:
    text = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(s3lake_\w+)` \| ([^|]*) \|", text, re.MULTILINE))
    assert rows == {name: ", ".join(labels) or "none" for name, labels in LABELS.items()}
