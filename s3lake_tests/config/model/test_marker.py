"""The place of an hour's marker, and why some layouts have no place for one."""

from typing import Any

import pytest
from pydantic import ValidationError

from s3lake.config.model import Sink
from s3lake.config.model.key_space import KeySpace, can_share_key
from s3lake.config.model.marker import build_marker_key
from s3lake_tests.kit.sinks import make_sink
from s3lake_tests.kit.tables import read_settings, rows

HOUR = "2026-11-20T05"


def sink(**more: Any) -> Sink:
    return make_sink(**{"prefix": "raw", "sealed": {"marker": "success"}, **more})


MARKERS = """
=> raw/orders/date=2026-11-20/hour=05/_SUCCESS
sealed.marker: objects => raw/orders/date=2026-11-20/hour=05/_objects.json
layout.template: "{hour:yyyy/DDD/HH}/{topic}-{partition}-{offset}" => raw/2026/324/05/_SUCCESS
layout.template: "{hour:yyyyMMddHH}/x/{field:a}/{partition}-{offset}" => raw/2026112005/x/_SUCCESS
"""
REFUSED = """
layout.template: null => {hour:…} is not before all that differs
layout.partition_by: [type] => {hour:…} is not before all that differs
layout.template: "{topic}/{time:yyyy/MM/dd/HH}/{partition}-{offset}" => {hour:…} is not before
layout.template: "{topic}/{field:a}/{hour:yyyyMMddHH}/{partition}-{offset}" => {hour:…} is not before
layout.template: "{topic}/{hour:yyyyMMddHH}-{partition}-{offset}" => {hour:…} is not before
layout.template: "{topic}/{hour:yyyy-MM-dd}/{partition}-{offset}" => other hours are in the same
layout.template: "{topic}/{hour:yyyy-MM-dd-hh}/{partition}-{offset}" => other hours are in the same
layout.template: "{topic}/{hour:MM-dd-HH}/{partition}-{offset}" => other hours are in the same
layout.template: "{topic}/{hour:yyyyMdH}/{partition}-{offset}" => other hours are in the same
topics: [a, b], layout.template: "{hour:yyyyMMddHH}/{topic}-{partition}-{offset}" =>
    other topics of the sink are in the same directory
"""


@pytest.mark.parametrize(("settings", "expected"), rows(MARKERS))
def test_a_marker_lies_in_the_directory_of_its_hour(settings: str, expected: str) -> None:
    assert build_marker_key(sink(**read_settings(settings)), "orders", HOUR) == expected
    assert build_marker_key(sink(sealed={}), "orders", HOUR) is None


@pytest.mark.parametrize(("settings", "why"), rows(REFUSED))
def test_a_layout_whose_hours_share_a_directory_is_refused_with_the_reason(settings: str, why: str) -> None:
    with pytest.raises(ValidationError) as refused:
        sink(**read_settings(settings))
    assert why in str(refused.value)
    assert "sealed.marker" in str(refused.value) or "set marker to none" in str(refused.value)


def test_a_marker_is_refused_when_transforms_rename_topics() -> None:
    router = {
        "type": "org.apache.kafka.connect.transforms.RegexRouter",
        "options": {"regex": "(.*)", "replacement": "x-$1"},
    }
    with pytest.raises(ValidationError, match="transforms give the records of an hour several topics"):
        sink(transforms=[router])


def test_two_sinks_that_mark_one_directory_can_share_a_key() -> None:
    other = sink(name="other", format={"type": "parquet"})
    assert can_share_key(sink(), other)
    assert not can_share_key(sink(sealed={}), other)


def test_a_marker_is_the_sink_s_own() -> None:
    assert KeySpace.from_sink(sink(), "orders").contains("raw/orders/date=2026-11-20/hour=05/_SUCCESS")
