"""Whose a key in the bucket may be."""

from typing import Any

import pytest

from s3lake.land import binding
from s3lake.layout.key import Span
from s3lake.sink import Sink
from s3lake.sink.key_space import KeySpace

START = "2026-11-20T00"
FILE = Span(7, 9, 1_000, 2_000, 3)


def sink(**more: Any) -> Sink:
    return Sink(**{"name": "events", "topics": ("orders",), "bucket": "lake", "start": START, "prefix": "raw", **more})


LAYOUTS: list[dict[str, Any]] = [
    {},
    {"layout": {"template": "{topic}/{partition}-{offset}"}},
    {"layout": {"partition_by": ["_value.country", "_topic"]}},
    {"format": {"type": "parquet", "codec": "zstd"}},
]


@pytest.mark.parametrize("more", LAYOUTS)
@pytest.mark.parametrize("renamed", ["", "~0123456789ab"])
def test_what_a_sink_writes_is_its_own(more: dict[str, Any], renamed: str) -> None:
    made = sink(**more)
    rule, keys = binding.key_rule(made, "orders", renamed), KeySpace.from_sink(made, "orders")
    key = rule.key(rule.data.group(3, ["ch"] * len(rule.data.elements)), FILE)
    letters = rule.dead_letters_key(3, 7)
    for one in (key, letters):
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
def test_what_it_cannot_have_written_is_not(key: str) -> None:
    assert not KeySpace.from_sink(sink(), "orders").contains(key)


def test_a_layout_with_nothing_before_what_records_say_claims_no_key_of_the_bucket() -> None:
    template = {"template": "{field:country}/{topic}/{partition}-{offset}"}
    assert KeySpace.from_sink(sink(prefix="", layout=template), "orders").prefixes == ()
    assert KeySpace.from_sink(sink(layout=template), "orders").prefixes == ("raw/", "raw/_dead_letters/events/orders/")
