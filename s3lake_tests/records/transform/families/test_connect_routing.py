"""Routers, headers, filters and predicates of Kafka Connect."""

from __future__ import annotations

from typing import Any

import pytest

from s3lake_tests.records.transform.kit import CLOCK, Message, after, chain, headers_after, refusal, run, smt, when


@pytest.mark.parametrize(
    ("regex", "replacement", "expected"),
    [
        ("ord.*", "x", "x"),
        ("rders", "x", "orders"),
        ("(.*)s", "$1", "order"),
        ("(?<what>.*)rs", "${what}-$0", "orde-orders"),
        (".*", r"\$x", "$x"),
        ("o|orders", "X", "Xrders"),
        ("o(x)?rders", "a$1b", "ab"),
        (r"\Qord\E[\p{Lower}]{3}", "q", "q"),
        ("(o)(.*)", "$21", "rders1"),
    ],
)
def test_regex_router_replaces_as_java_does(regex: str, replacement: str, expected: str) -> None:
    assert after(Message({}), smt("RegexRouter", {"regex": regex, "replacement": replacement})).topic == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "orders-20200105"),
        ({"topic.format": "foo-${topic}-${timestamp}", "timestamp.format": "yyyyMM"}, "foo-orders-202001"),
        ({"topic.format": "${topic}/${timestamp}", "timestamp.format": "yyyy/MM/dd"}, "orders/2020/01/05"),
    ],
)
def test_timestamp_router_puts_the_time_into_the_topic(options: dict[str, Any], expected: str) -> None:
    assert after(Message({}), smt("TimestampRouter", options)).topic == expected


def test_later_transforms_see_the_new_name() -> None:
    route = smt("RegexRouter", {"regex": "(.*)s", "replacement": "$1"})
    assert after(Message({}), route, smt("InsertField$Value", {"topic.field": "t"})).value == {"t": "order"}


@pytest.mark.parametrize("name", ["", "..", "a/../b", "a//b", "x\n", "n" * 250])
def test_a_topic_without_a_name_for_keys_refuses_the_record(name: str) -> None:
    reason = refusal(Message({}), smt("RegexRouter", {"regex": ".*(s)", "replacement": name}))
    assert "the topic would be called" in reason
    reason = refusal(Message({}, timestamp=-1), smt("TimestampRouter", name="daily"))
    assert reason == "transform 'daily' (TimestampRouter): the record has no timestamp"


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("dummy value", b"dummy value"),
        ("2", b"2"),
        ("2353245343456.435435", b"2353245343456.435435"),
        ("true", b"true"),
        ("2019-08-23", b"2019-08-23"),
        (r"14\:34\:54.346Z", b"14:34:54.346Z"),
        ('"quoted"', b'"quoted"'),
        (r"C\:\dir", rb"C\:\dir"),
        (" trimmed ", b"trimmed"),
        (" null", None),
    ],
)
def test_insert_header_adds_a_literal_after_other_headers(literal: str, value: bytes | None) -> None:
    insert = smt("InsertHeader", {"header": "AAA", "value.literal": literal})
    existing = (("AAA", b"existing"), ("BBB", b"existing"))
    assert headers_after(Message({}, headers=existing), insert) == [*existing, ("AAA", value)]


def test_a_record_without_headers_has_null_for_them() -> None:
    done = run(chain(smt("DropHeaders", {"headers": "a"})), Message({}, headers=(("a", b"1"),)), Message({}))
    assert done.batch.column("headers").to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("predicate", "negate", "rows"),
    [
        (when("RecordIsTombstone"), False, [0, 2]),
        (when("RecordIsTombstone"), True, [1]),
        (when("HasHeaderKey", name="h"), False, [0, 1]),
        (when("TopicNameMatches", pattern="ord.*"), False, []),
        (when("TopicNameMatches", pattern="ord"), False, [0, 1, 2]),
    ],
)
def test_filter_drops_what_its_predicate_picks(predicate: Any, negate: bool, rows: list[int]) -> None:
    messages = (Message({"a": 1}), Message(None), Message({"a": 2}, headers=(("h", b""),)))
    done = run(chain(smt("Filter", predicate=predicate, negate=negate)), *messages)
    assert (done.rows.to_pylist(), done.filtered, done.refused) == (rows, 3 - len(rows), {})


def test_a_predicate_sees_what_earlier_transforms_did() -> None:
    extract = smt("ExtractField$Value", {"field": "after"})
    drop = smt("Filter", predicate=when("RecordIsTombstone"))
    done = run(chain(extract, drop), Message({"after": None}), Message({"after": {"a": 1}}))
    assert done.rows.to_pylist() == [1]


def test_other_records_pass_a_transform_with_a_predicate() -> None:
    mask = smt("MaskField$Value", {"fields": "a"}, predicate=when("HasHeaderKey", name="secret"))
    done = run(chain(mask), Message({"a": 1}, headers=(("secret", None),)), Message(b'{ "a": 1 }'))
    assert done.batch.column("value").to_pylist() == [b'{"a":0}', b'{ "a": 1 }']


def test_a_class_may_be_named_with_its_package() -> None:
    package = "org.apache.kafka.connect.transforms."
    drop = smt(f"{package}Filter", predicate=when(f"{package}predicates.RecordIsTombstone"))
    assert run(chain(drop), Message(None, timestamp=CLOCK)).filtered == 1
