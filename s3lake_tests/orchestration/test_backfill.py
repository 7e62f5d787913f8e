"""A backfill by the daemon's own code, from the request that the UI sends to complete hours in the index."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import ModuleTarget
from dagster._daemon.backfill import execute_backfill_iteration

from s3lake import hours
from s3lake_tests.lake import Lake, at, values

pytestmark = [
    # Dagster's own backfills call it.
    pytest.mark.filterwarnings("ignore:Function `AssetSelection.sources` is deprecated:DeprecationWarning"),
    # The event loop of Dagster's own test client for GraphQL.
    pytest.mark.filterwarnings("ignore:coroutine 'BaseEventLoop.shutdown_asyncgens':RuntimeWarning"),
]

FIRST, LAST = "2026-01-05T08", "2026-01-06T09"
LAUNCH = """
mutation($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Runs are executed at once, in this process."""
    with dg.instance_for_test(synchronous_run_coordinator=True, synchronous_run_launcher=True) as made:
        yield made


def backfilled(instance: dg.DagsterInstance, config: Path, key: dg.AssetKey, wanted: list[str]) -> Any:
    """Ask as the UI does, and let the daemon's loop do it."""
    from dagster_graphql.test.utils import execute_dagster_graphql  # half a second, in all that collect

    target = ModuleTarget("s3lake.definitions", None, str(config.parent), "s3lake")
    with create_test_daemon_workspace_context(target, instance) as workspace:
        answer = execute_dagster_graphql(
            workspace.create_request_context(),
            LAUNCH,
            variables={"params": {"assetSelection": [{"path": list(key.path)}], "partitionNames": wanted}},
        )
        launched = answer.data["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        backfill_id = launched["backfillId"]
        for _ in range(10):
            list(execute_backfill_iteration(workspace, logging.getLogger("backfill")))
            found = instance.get_backfill(backfill_id)
            assert found is not None
            if found.status in (BulkActionStatus.COMPLETED_SUCCESS, BulkActionStatus.COMPLETED_FAILED):
                return found
    raise AssertionError("the backfill does not end")


@pytest.mark.slow("lands 26 hours")
def test_of_26_hours_is_two_runs_that_land_them_all(
    lake: Lake, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = lake.topic(partitions=2)
    wanted = list(hours.span(FIRST, LAST))
    for number, hour in enumerate(wanted):
        lake.produce(topic, values(10), at(hour, 5), number % 2)
    config = tmp_path / "s3lake.yaml"
    config.write_text(lake.config_text(f"name: events, topics: ['{topic}']"))
    monkeypatch.setenv("S3LAKE_CONFIG", str(config))
    key = dg.AssetKey(["s3", "events", topic])

    found = backfilled(instance, config, key, wanted)

    assert found.status is BulkActionStatus.COMPLETED_SUCCESS
    runs = sorted(instance.get_runs(), key=lambda run: run.tags["dagster/asset_partition_range_start"])
    assert [run.tags["dagster/asset_partition_range_end"] for run in runs] == [hours.shift(FIRST, 23), LAST]
    assert [run.status for run in runs] == [dg.DagsterRunStatus.SUCCESS] * 2
    assert instance.get_materialized_partitions(key) == set(wanted)
    landing = lake.landing(topic, now_ms=at("2026-01-07T00"))
    tiles = list(landing.index.tiles())
    assert [tile.hour for tile in tiles] == wanted
    assert all(tile.complete for tile in tiles)
    report = lake.verify(landing)
    assert report.clean
    assert report.landed == 260
