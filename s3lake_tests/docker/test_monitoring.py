"""What Prometheus and Grafana are given: it parses, and names nothing that `s3lake metrics` does not tell."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from s3lake.land.metrics import METRICS
from s3lake_tests.docker.test_docker import COMPOSE, DOCKER, SERVICES, mounted

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


def test_panels_have_names_of_their_own_and_lie_side_by_side() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_alerts_say_what_is_wrong_and_stand_in_the_documentation() -> None:
    text = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    for rule in ALERTS:
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert f"`{rule['alert']}`" in text


def test_every_metric_stands_in_the_documentation_with_its_labels() -> None:
    text = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(s3lake_\w+)` \| ([^|]*) \|", text, re.MULTILINE))
    assert rows == {name: ", ".join(labels) or "none" for name, labels in LABELS.items()}


def test_prometheus_asks_where_metrics_listens_and_reads_the_rules() -> None:
    config = yaml.safe_load(Path(mounted("prometheus")["/etc/prometheus/prometheus.yml"]).read_text(encoding="utf-8"))
    [job] = config["scrape_configs"]
    port = SERVICES["metrics"]["command"][-1].rpartition(":")[2]
    assert job["job_name"] == "s3lake"
    assert job["static_configs"] == [{"targets": [f"metrics:{port}"]}]
    assert all(rules in mounted("prometheus") for rules in config["rule_files"])


def test_grafana_is_given_the_dashboard_and_the_source_that_it_names() -> None:
    files = mounted("grafana")
    [provider] = yaml.safe_load((DOCKER / "grafana/provider.yaml").read_text(encoding="utf-8"))["providers"]
    [source] = yaml.safe_load((DOCKER / "grafana/datasource.yaml").read_text(encoding="utf-8"))["datasources"]
    home = SERVICES["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert Path(files[home]).samefile(DOCKER / "grafana/dashboard.json")
    assert home.startswith(provider["options"]["path"])
    assert {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]} == {source["uid"]}
    assert source["url"] == "http://prometheus:9090"


def test_monitoring_starts_only_when_it_is_asked_for() -> None:
    profiles = {name: service.get("profiles", []) for name, service in COMPOSE["services"].items()}
    asked = {name for name, named in profiles.items() if "monitoring" in named}
    assert asked == {"metrics", "prometheus", "grafana"}
