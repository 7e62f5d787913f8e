"""Red hours of real Kafka, S3 and Spark as Dagster's own API has them, which the UI shows."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from s3lake.demo.start import BUCKET
from s3lake.index.store.s3_store import S3Store
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import until
from s3lake_tests.kit.s3 import connection_to
from s3lake_tests.ui.site import Site, start_site

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


@pytest.fixture(scope="module")
def site(jvm: Path) -> Iterator[Site]:  # noqa: ARG001 (it needs Java)
    """The UI, with sinks whose hours become red."""
    with start_site(red=True) as served:
        yield served


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


def run_command(site: Site, words: str, hour: str = "", last: str = "") -> str:
    """Run a command of s3lake on the site's configuration. Return its exit code and what it prints, in one text."""
    hours = ["--from", hour, "--to", last or hour] if hour else []
    ended = subprocess.run(
        [sys.executable, "-m", "s3lake", *words.split(), *hours],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, "S3LAKE_CONFIG": str(site.home / "s3lake.yaml"), "DAGSTER_HOME": str(site.home)},
    )
    return f"{ended.returncode}: {ended.stdout}{ended.stderr}"


def harm_tile(site: Site, hour: str, change: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
    """Change the tile of an hour of the sink `harmed`, as no program of s3lake does. Return what restores it.

    Nothing that Kafka, S3 and s3lake do makes these hours red: the commit refuses to write such a tile.
    """
    store, key = S3Store(connection_to(site.s3), BUCKET), f".indexes/harmed/payments/{hour}.json"
    found = store.get(key)
    assert found is not None
    tile = json.loads(found.body)
    change(tile)
    store.put(key, json.dumps(tile).encode())
    return lambda: store.put(key, found.body)


def test_an_hour_whose_rows_do_not_add_up_shows_the_numbers_and_a_rewrite_repairs_it(site: Site) -> None:
    hour, sink = site.hours[0], "--sink harmed --topic payments"
    _, events = run(site, "harmed", "payments", hour)
    assert "rows_equal_offsets" not in list_red(events)
    harm_tile(site, hour, lambda tile: tile["sums"].update(landed=16))
    _, events = run(site, "harmed", "payments", hour, ("rows_equal_offsets",))
    assert list_red(events) == {
        "rows_equal_offsets": "18 offsets are landed, with 18 records. Of them the files have 16 rows and 1 dead "
        "letter; 0 were skipped, 0 filtered. Offsets without a record: 0. That does not add up: run `s3lake verify` "
        "of the hour."
    }
    shown = run_command(site, f"verify {sink}", hour)
    assert shown.startswith("1: ")
    assert f"count: payments {hour}: the tile states landed 16, its commits 17\n" in shown
    assert "not landed 0, missing 0, duplicated 0\n" in shown  # the files are right, the index is not
    assert "18 offsets = 17 rows + 1 dead letter" in run_command(site, f"rewrite --yes {sink}", hour)
    _, events = run(site, "harmed", "payments", hour, ("rows_equal_offsets",))
    assert list_red(events) == {}
    assert run_command(site, f"verify {sink}", hour).startswith("0: ")


def test_an_hour_with_wrong_edges_shows_the_offsets_until_its_document_is_restored(site: Site) -> None:
    hour, following, _ = site.hours
    for one in (hour, following):
        run(site, "harmed", "payments", one)
    restore = harm_tile(site, following, lambda tile: tile["partitions"]["0"].update(start=17))
    for one in (hour, following):
        _, events = run(site, "harmed", "payments", one, ("offsets_contiguous",))
        assert list_red(events) == {
            "offsets_contiguous": f"{hour} to {following}: topic-partition 0 has 1 offset in both hours. Run "
            "`s3lake verify` of these hours."
        }
    shown = run_command(site, "verify --sink harmed --topic payments", hour, following)
    assert shown.startswith("1: ")
    assert f"interval: payments {following} partition 0: offsets 17 to 17 are also in the tile of {hour}\n" in shown
    restore()
    _, events = run(site, "harmed", "payments", following, ("offsets_contiguous",))
    assert list_red(events) == {}
    assert run_command(site, "verify --sink harmed --topic payments", hour, following).startswith("0: ")


def test_hours_that_a_clock_far_ahead_empties_show_the_record_and_the_remedy(site: Site) -> None:
    hour, following, _ = site.hours
    reason = (
        "offset 1 of partition 0 is stamped 2199-01-01T00:00:00Z: later hours cannot be told apart, so they may be "
        "empty and their records in another hour; correct the producer's clock or unit, and let the topic refuse such "
        "records (message.timestamp.after.max.ms)"
    )
    for one in (hour, following):
        status, events = run(site, "ahead", "clocks", one)
        assert (status, list_red(events)) == ("SUCCESS", {"offsets_contiguous": reason})
        assert f"notice: ahead clocks {one}: {reason}\n" in run_command(site, "index show --sink ahead", one)
    shown = run_command(site, "verify --sink ahead", hour, following)
    assert shown.startswith("0: ")
    assert f"notice: ahead clocks: {reason}\n" in shown


def test_an_hour_whose_table_fails_shows_the_reason_until_the_table_is_synced(site: Site) -> None:
    hour = site.hours[0]
    status, events = run(site, "tabled", "payments", hour)
    reason = (
        "table lake.payments of sink tabled: OperationalError: (sqlite3.OperationalError) unable to open database "
        "file. What is landed stays landed; the next run of the hour or `s3lake table sync` brings the table to it"
    )
    assert (status, list_red(events)["table"]) == ("SUCCESS", reason)
    assert run_command(site, "verify --sink tabled", hour).startswith("0: ")
    assert (
        run_command(site, "table sync --sink tabled --yes") == f"3: tabled payments: TableUnavailableError: {reason}\n"
    )
    (site.home / "unmounted").mkdir()
    assert run_command(site, "table sync --sink tabled --yes").endswith(": 1 commit, 1 file, 17 rows added\n")
    _, events = run(site, "tabled", "payments", hour, ("table",))
    assert list_red(events) == {}
