"""What tables of assets are called in a sink, and which names are refused when a code location is loaded."""

from typing import Any

import dagster as dg
import pytest

from s3lake.config import native
from s3lake.config.model import Config
from s3lake.errors import ConfigurationError
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.table_names import table_name

TEXT = """\
kafka: {bootstrap_servers: "h:9092"}
sinks:
  - {name: tables, topics: [orders, daily.clicks], bucket: lake, start: 2026-01-05T08, format: {type: parquet}}
  - {name: others, bucket: other, start: 2026-01-05T08, format: {type: parquet}}
"""


@pytest.fixture
def config() -> Config:
    return native.load_text(TEXT, "s3lake.yaml")


def asset(*path: str, sink: str = "tables") -> Any:
    @dg.asset(key=list(path), io_manager_key=f"s3lake_{sink}_io_manager")
    def table() -> int:
        return 1

    return table


def test_a_table_is_called_after_its_asset() -> None:
    assert table_name(dg.AssetKey(["analytics", "daily"])) == "analytics.daily"


@pytest.mark.parametrize("key", [["a b"], ["."], ["a" * 250], ["ä"]])
def test_a_key_that_is_no_name_in_a_bucket_is_refused(key: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="its tables would be called"):
        table_name(dg.AssetKey(key))


def test_a_key_that_is_no_name_in_a_bucket_is_refused_at_load(config: Config) -> None:
    with pytest.raises(ConfigurationError, match="its tables would be called"):
        build_definitions(config, project=dg.Definitions(assets=[asset("a" * 250)]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["daily", "orders"], ["daily.orders"]),
        (["a", "b", "c"], ["a.b", "c"]),
        (["a.b", "c"], ["a", "b.c"]),
    ],
)
def test_two_assets_of_one_name_in_a_sink_are_refused_at_load(config: Config, one: list[str], other: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        build_definitions(config, project=dg.Definitions(assets=[asset(*one), asset(*other)]))
    assert f"the tables of both would be called {'.'.join(one)!r} in sink tables" in str(caught.value)
    assert str(one) in str(caught.value)
    assert str(other) in str(caught.value)


@pytest.mark.parametrize("key", [["orders"], ["daily", "clicks"]])
def test_the_name_of_a_topic_of_the_sink_is_refused_at_load(config: Config, key: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="which is a topic of sink tables: rename the asset"):
        build_definitions(config, project=dg.Definitions(assets=[asset(*key)]))


def test_one_name_in_two_sinks_and_other_io_managers_are_merged(config: Config) -> None:
    @dg.asset(key=["daily.orders"])
    def elsewhere() -> int:
        return 1

    own = dg.Definitions(assets=[asset("daily", "orders"), elsewhere, asset("orders", sink="others")])
    merged = build_definitions(config, project=own)
    keys = merged.resolve_asset_graph().get_all_asset_keys()
    assert {dg.AssetKey(["daily", "orders"]), dg.AssetKey(["daily.orders"]), dg.AssetKey(["orders"])} <= keys
    assert dg.AssetKey(["s3", "tables", "orders"]) in keys
