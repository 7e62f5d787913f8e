"""What Prometheus and Grafana are given: it parses, and names nothing that `s3lake metrics` does not tell."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from s3lake.land.metrics import FAMILIES
from s3lake_tests.docker.test_docker import COMPOSE, DOCKER, SERVICES, mounted

ROOT = DOCKER.parent
DASHBOARD: dict[str, Any] = json.loads((DOCKER / "grafana/dashboard.json").read_text(encoding="utf-8"))
ALERTS = [
    rule
    for group in yaml.safe_load((DOCKER / "prometheus/alerts.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
FUNCTIONS = {"absent", "increase", "label_values", "max", "min", "rate", "sum", "time"}
WORDS = {"and", "or", "by"}
TOKEN = re.compile(
    r"""\s*(?:(?P<name>[a-zA-Z_]\w*)|(?P<labels>\{[^{}]*\})|(?P<range>\[\d+[smhd]\])|(?P<number>\d+(?:\.\d+)?)"""
    r"""|(?P<sign>==|[<>]=?|[-+*/(),]))\s*"""
)
MATCHER = re.compile(r'(\w+)(?:=~|!~|!=|=)"[^"]*"')


def expressions() -> Iterator[tuple[str, str]]:
    for rule in ALERTS:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        yield f"variable {variable['name']}", variable["query"]["query"]


EXPRESSIONS = dict(expressions())


def tokens(expression: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(expression):
        token = TOKEN.match(expression, at)
        assert token is not None, f"{expression!r} from {expression[at:]!r} on"
        assert token.lastgroup is not None
        found.append((token.lastgroup, token[token.lastgroup]))
        at = token.end()
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS.keys())
def test_expression_names_metrics_and_labels_that_there_are(expression: str) -> None:
    parts = tokens(expression)
    depth = 0
    for (group, text), (following, opened) in zip(parts, [*parts[1:], ("", "")], strict=True):
        depth += {"(": 1, ")": -1}.get(text, 0) if group == "sign" else 0
        assert depth >= 0
        if group == "name" and text in FAMILIES:
            labels = {*FAMILIES[text].labels, "job", "instance"}
            matchers = [part.strip() for part in opened[1:-1].split(",")] if following == "labels" else []
            assert {name[1] for part in matchers if (name := MATCHER.fullmatch(part))} <= labels
            assert all(map(MATCHER.fullmatch, matchers))
        elif group == "name":
            known = {label for family in FAMILIES.values() for label in family.labels}
            assert text in FUNCTIONS | WORDS | known | {"up"}, f"{text} in {expression}"
            assert text not in FUNCTIONS or opened in ("(", "by"), f"{text} of nothing in {expression}"
    assert depth == 0


def test_counters_are_only_shown_as_rates() -> None:
    counters = [name for name, family in FAMILIES.items() if family.type == "counter"]
    for expression in EXPRESSIONS.values():
        for name in counters:
            assert all(before in ("rate(", "increase(") for before in re.findall(rf"(\w*\(?){name}", expression))


def test_every_metric_is_on_the_dashboard() -> None:
    shown = " ".join(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])
    assert [name for name in FAMILIES if not re.search(rf"\b{name}\b", shown)] == []


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
    assert rows == {name: ", ".join(family.labels) or "none" for name, family in FAMILIES.items()}


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
