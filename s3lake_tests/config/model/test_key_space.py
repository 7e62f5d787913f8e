"""The keys that a sink can write."""

from typing import Any

import pytest

from s3lake.config.model import Sink
from s3lake.config.model.key_space import KeySpace, can_share_key
from s3lake.land.request import stage_values
from s3lake.records.layout.object_keys import FileNumbers
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.kit.tables import read_settings, rows

FILE = FileNumbers(7, 9, 1_000, 2_000, 3)


def sink(**changes: Any) -> Sink:
    return make_sink(**{"topics": ["events"], **changes})


def orders(**changes: Any) -> Sink:
    return make_sink(**{"prefix": "raw", **changes})


LAYOUTS: list[dict[str, Any]] = [
    {},
    {"layout": {"template": "{topic}/{partition}-{offset}"}},
    {"layout": {"partition_by": ["_value.country", "_topic"]}},
    {"format": {"type": "parquet", "codec": "zstd"}},
]


@pytest.mark.parametrize("more", LAYOUTS)
@pytest.mark.parametrize("renamed", ["", "~0123456789ab"])
def test_a_key_that_a_sink_writes_is_in_its_key_space(more: dict[str, Any], renamed: str) -> None:
    made = orders(**more)
    rule, keys = stage_values.build_key_layout(made, "orders", renamed), KeySpace.from_sink(made, "orders")
    key = rule.key(rule.data.group(3, ["ch"] * len(rule.data.elements)), FILE)
    dead_letters = rule.dead_letters_key(3, 7)
    for one in (key, dead_letters):
        assert keys.contains(one)
        assert any(one.startswith(begin) for begin in keys.prefixes)


@pytest.mark.parametrize(
    "key",
    [
        "raw/clicks/3/000000000007.json",
        "raw/orders/3/notes.txt",
        "raw/orders/3/7.json.tmp",
        "raw/_dead_letters/other/orders/3/7.json",
        "orders/3/000000000007.json",
    ],
)
def test_a_key_that_a_sink_cannot_write_is_not_in_its_key_space(key: str) -> None:
    assert not KeySpace.from_sink(orders(), "orders").contains(key)


def test_a_key_space_without_a_fixed_beginning_has_no_prefixes() -> None:
    template = {"template": "{field:country}/{topic}/{partition}-{offset}"}
    assert KeySpace.from_sink(orders(prefix="", layout=template), "orders").prefixes == ()
    assert KeySpace.from_sink(orders(layout=template), "orders").prefixes == ("raw/",)


def test_a_key_space_has_the_prefixes_of_data_dead_letters_and_trials_of_the_store() -> None:
    assert KeySpace.from_sink(orders(), "orders").prefixes == (
        "raw/.probe/",
        "raw/_dead_letters/events/orders/",
        "raw/orders/date=",
    )


# Two sinks

COUNTRY = '"{field:country}/{topic}/{partition}-{offset}"'
TOMBSTONES = 'nulls: write, sidecars.keys: json, layout.tombstones: "t/{partition}-{offset}"'
SHARED = f"""
=>
prefix: raw => prefix: raw/
topics: [], topics_regex: a.* => topics: [], topics_regex: .*b
topics: [], topics_regex: e.* => topics: [events]
layout.template: null => layout.suffix: "2"
=> layout.template: "{{topic}}/{{key}}/{{partition}}+{{offset}}"
layout.partition_by: [a], layout.include_keys: false => layout.partition_by: [b], layout.include_keys: false
layout.partition_by: [a], layout.include_keys: false =>
    layout.partition_by: [a], layout.include_keys: false, prefix: events
layout.template: "{{topic}}/{{partition}}/{{offset:012}}" => layout.template: null
layout.template: "{{topic}}/{{key}}/{{offset}}", exactly_once: false => layout.template: null
layout.template: "{{topic}}/date={{time:yyyy}}/hour=1/{{partition}}-{{offset}}" =>
layout.template: {COUNTRY} => layout.template: "{{time:yyyy}}/{{topic}}/{{partition}}-{{offset}}"
layout.template: "{{partition}}-{{offset}}" => topics: [b], layout.template: "{{partition}}-{{offset}}"
topics: [], topics_regex: a.*, layout.template: "{{topic}}-{{partition}}-{{offset}}" =>
    topics: [a-1], layout.template: "{{topic}}-{{partition}}-{{offset}}"
layout.connector_names: true => layout.template: "{{topic}}/{{partition}}/{{offset}}_{{key}}"
sidecars.keys: json => layout.extension: .keys.json
{TOMBSTONES}, layout.template: "a/{{partition}}-{{offset}}" =>
    {TOMBSTONES}, layout.template: "b/{{partition}}-{{offset}}"
"""
# Tables of assets have keys with the marks of their commits.
APART = """
=> topics: []
=> topics: [clicks]
=> topics: [], topics_regex: clicks.*
=> prefix: raw
=> layout.suffix: -b
=> layout.template: null
=> format.type: parquet
=> format.codec: gzip
=> layout.partition_by: [a]
=> layout.connector_names: true
=> layout.template: "raw/{topic}/{partition}-{offset}"
=> layout.template: "{topic}/{partition}/{offset}-{key}"
=> layout.template: "{time:yyyy}/{partition}/{offset}z"
=> layout.extension: .jsonl
layout.partition_by: [a] => layout.partition_by: [b]
layout.template: "{topic}/a={field:a}/{partition}-{offset}" =>
    layout.template: "{topic}/b={field:a}/{partition}-{offset}"
exactly_once: false, layout.template: "{key}-a", layout.extension: "" =>
    exactly_once: false, layout.template: "{key}-b", layout.extension: ""
"""


@pytest.mark.parametrize(("one", "other"), rows(SHARED))
def test_sinks_that_can_share_a_key(one: str, other: str) -> None:
    first, second = (sink(**read_settings(settings)) for settings in (one, other))
    assert can_share_key(first, second)
    assert can_share_key(second, first)


@pytest.mark.parametrize(("one", "other"), rows(APART))
def test_sinks_that_cannot_share_a_key(one: str, other: str) -> None:
    assert not can_share_key(sink(**read_settings(one)), sink(**read_settings(other)))


def test_a_sink_with_an_expression_can_share_keys_of_topics_that_it_matches() -> None:
    layout = {"template": "{topic}/{partition}-{offset}"}
    every = sink(topics=[], topics_regex="cl.*", layout=layout)
    assert can_share_key(every, sink(topics=["clicks"], layout=layout))
    assert not can_share_key(every, sink(layout=layout))
    assert not can_share_key(every, sink(topics=["clicks"], layout=layout, prefix="raw/x"))


@pytest.mark.parametrize(
    "template",
    [
        "{topic}/{key}/{partition}-{offset}",
        "x-{topic}+{key}+{partition}-{offset}",
    ],
)
def test_keys_of_different_topics_differ_when_the_key_shows_the_topic(template: str) -> None:
    def many(name: str) -> Sink:
        return sink(topics=[f"{name}-{number}" for number in range(100)], layout={"template": template})

    assert not can_share_key(many("clicks"), many("views"))
    assert can_share_key(many("clicks"), sink(topics=["clicks-7"], layout={"template": template}))
