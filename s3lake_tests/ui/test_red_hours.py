"""Red hours of real Kafka, S3 and Spark as Dagster's own API has them, which the UI shows."""

import json
import urllib.request
from typing import Any

import pytest

from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import until
from s3lake_tests.ui.site import Site

pytestmark = pytest.mark.slow("unit tests have the sentences; here they come from real records")

_LAUNCH = """
mutation ($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}
"""
_STATUS = """
query ($run: ID!) { runOrError(runId: $run) { ... on Run { status } } }
"""
_EVENTS = """
query ($run: ID!) {
  logsForRun(runId: $run) {
    ... on EventConnection {
      events {
        ... on ExecutionStepFailureEvent { error { message } }
        ... on AssetCheckEvaluationEvent {
          evaluation { checkName success description partition metadataEntries { label } }
        }
      }
    }
  }
}
"""


def ask(site: Site, question: str, **variables: Any) -> Any:
    body = json.dumps({"query": question, "variables": variables}).encode()
    request = urllib.request.Request(f"{site.url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        document = json.load(answer)
    assert "errors" not in document, document
    return document["data"]


def run(site: Site, sink: str, topic: str, hour: str, checks: tuple[str, ...] | None = None) -> tuple[str, list[Any]]:
    """Land an hour, or make only these checks of it. Return the status of the run and its events."""
    path = ["s3", sink, topic]
    selector: dict[str, Any] = {
        "repositoryLocationName": "s3lake",
        "repositoryName": "__repository__",
        "jobName": "__ASSET_JOB",
        "assetSelection": [{"path": path}] if checks is None else [],
    }
    if checks is not None:
        selector["assetCheckSelection"] = [{"assetKey": {"path": path}, "name": name} for name in checks]
    tags = [{"key": "dagster/partition", "value": hour}]
    params = {"selector": selector, "mode": "default", "executionMetadata": {"tags": tags}}
    launched = ask(site, _LAUNCH, params=params)["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    number = launched["run"]["runId"]

    def status() -> str:
        return str(ask(site, _STATUS, run=number)["runOrError"]["status"])

    until(lambda: status() in ("SUCCESS", "FAILURE"))
    events = ask(site, _EVENTS, run=number)["logsForRun"]["events"]
    return status(), [event for event in events if event]


def list_red(events: list[Any]) -> dict[str, str]:
    """Return the sentences of the checks that are red, by their names."""
    evaluations = [event["evaluation"] for event in events if "evaluation" in event]
    return {one["checkName"]: one["description"] for one in evaluations if not one["success"]}


def test_an_hour_with_dead_letters_shows_how_many_and_why(site: Site) -> None:
    status, events = run(site, "lenient", "payments", site.hours[0])
    sentence = list_red(events)["dead_letters"]
    assert status == "SUCCESS"
    assert sentence.startswith("1 record is refused, of 18 (5.56%); errors.threshold allows 0. 1 in stage convert: ")
    assert sentence.endswith("The asset s3/lenient/payments_dead_letters has their places.")


def test_an_hour_whose_run_failed_shows_the_record_and_the_remedy_once(site: Site) -> None:
    status, events = run(site, "strict", "payments", site.hours[0])
    (message,) = [event["error"]["message"] for event in events if event.get("error")]
    assert status == "FAILURE"
    assert message.count("Set errors.tolerance") == 1
    assert "payments" in message
    assert "offset 17" in message


def test_an_hour_that_no_run_has_landed_shows_what_waits_and_the_remedy(site: Site) -> None:
    status, events = run(site, "typed", "payments", site.hours[0], ("offsets_contiguous", "lag"))
    assert status == "SUCCESS"
    assert list_red(events) == {
        "offsets_contiguous": "Kafka has 18 offsets of the hour, and no run has landed them: materialize it.",
        "lag": "18 records are not landed, and the oldest has waited for more than 10 min, twice flush.interval. "
        "Look at the sensor's last tick and the last run.",
    }
