"""Assets that forward hours: what they are called, and that sealed hours ask for them, and nothing else."""

from typing import Any

import dagster as dg
import pytest

import s3lake
from s3lake.errors import ConfigurationError
from s3lake.orchestration.translator import sealed_key
from s3lake_tests.kit.sinks import make_config, make_sink

CONFIG = make_config(make_sink(topics=["clicks", "orders"]))
ORDERS = dg.AssetKey(["forward", "stdout", "orders"])


def keys(**options: Any) -> list[str]:
    return [asset.key.to_user_string() for asset in s3lake.forward(CONFIG, "events", **options)]


def test_each_topic_has_one_below_the_name_of_its_destination() -> None:
    assert keys(to="stdout") == ["forward/stdout/clicks", "forward/stdout/orders"]
    assert keys(to=s3lake.Postgres("host=db"), topics=["orders"]) == ["forward/postgres/orders"]
    assert keys(to="stdout", topics=["orders"], name="look", translator=s3lake.SinkTranslator("eu")) == [
        "eu/forward/look/orders"
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": "stdout", "topics": ["order"]}, "order is not a topic of sink events; it has clicks, orders"),
        ({"to": "kafka"}, "no installed package brings 'kafka'"),
        ({"to": s3lake.Stdout(), "options": {}}, "they make a destination that is given by name"),
    ],
)
def test_invalid_forwards_are_refused_when_definitions_load(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        s3lake.forward(CONFIG, "events", **options)


FORWARDS = [
    {"to": "stdout", "topics": ["orders"]},
    {"to": "postgres", "options": {"conninfo": "host=db password=hunter2", "table": "lake.events"}, "name": "shop"},
]


def with_forwards(*forwards: Any) -> s3lake.Config:
    return make_config(make_sink(topics=["clicks", "orders"], forwards=forwards))


def test_forwards_of_the_configuration_are_assets_that_follow_sealed_hours() -> None:
    definitions = s3lake.build_definitions(with_forwards(*FORWARDS))
    graph = definitions.resolve_asset_graph()
    keys = {key.to_user_string() for key in graph.get_all_asset_keys() if key.path[0] == "forward"}
    assert keys == {"forward/stdout/orders", "forward/shop/clicks", "forward/shop/orders"}
    assert sealed_key(CONFIG.sink("events"), "orders") in graph.get(ORDERS).parent_keys
    sensor = definitions.resolve_sensor_def("follow_sealed_hours")
    assert ORDERS in sensor.asset_selection.resolve(graph)  # type: ignore[union-attr]


def test_a_forward_that_its_destination_refuses_names_the_sink_and_what_is_allowed() -> None:
    config = with_forwards({"to": "postgres", "options": {"conninfo": "", "tabel": "orders"}})
    with pytest.raises(
        ConfigurationError, match=r"sink events: forwards\[0\]: options of postgres: .*'tabel'; it takes"
    ):
        s3lake.build_definitions(config)


def test_forwards_of_expressions_that_are_the_same_asset_are_refused() -> None:
    config = make_config(
        *(
            make_sink(name=name, topics=(), topics_regex=f"{name}.*|orders", bucket=name, forwards=[{"to": "stdout"}])
            for name in ("events", "copies")
        )
    )
    with pytest.raises(ConfigurationError, match="2 forwards would be the asset forward/stdout/orders"):
        s3lake.build_definitions(config, matching={str(sink.topics_regex): ["orders"] for sink in config.sinks})
