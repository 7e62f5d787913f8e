"""Envelopes and sidecars: their bytes, and that key, headers and metadata are judged as the value is."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from s3lake.lake.verify.log import UNREADABLE
from s3lake_tests.lake.verify.staged_records import stage_records
from s3lake_tests.lake.verify.world import VerifiedTopic, parquet, texts

Header = tuple[str, bytes | None]
Record = tuple[bytes | None, bytes | None, list[Header]]
"""Key, value, headers."""

RECORDS: list[Record] = [
    (b"k", b'{"n": 1}', [("a", b"1"), ("b-c", None)]),
    (None, b'{"n":2.50}', []),
    (b"", b'{\n"n":3,"y":[]}', [("a", b"1"), ("b", b"2"), ("a", b"3")]),
    ("Łódź".encode(), b'{"n":4}', [("a", b"\xff"), ("a", b"")]),
]


def world_of(records: Sequence[Record], **sink: Any) -> VerifiedTopic:
    world = VerifiedTopic(**sink)
    for key, value, headers in records:
        world.record(value, key, headers)
    return world


def finds_any_change(world: VerifiedTopic) -> bool:
    """Whether what landed is clean, and is not once a key, a value, a header or a timestamp is another."""
    clean = world.verify()
    assert clean.clean, clean.differences
    fields = world.sink.envelope.fields if world.sink.envelope else ("value",)
    changes: dict[str, Callable[[int], None]] = {
        "key": lambda at: world.log.more.update({(0, at): (b'"other"', world.log.more[0, at][1])}),
        "headers": lambda at: world.log.more.update({(0, at): (world.log.more[0, at][0], [("other", b"1")])}),
        "value": lambda at: world.log.records[0].update({at: (world.log.records[0][at][0], b'{"n":9}')}),
        "timestamp": lambda at: world.log.records[0].update({at: (1, world.log.records[0][at][1])}),
    }
    for field, change in changes.items():
        if field not in fields and not (field == "timestamp" and "metadata" in fields):
            continue
        for at in world.log.records[0]:
            saved = world.log.records[0][at], world.log.more[0, at]
            change(at)
            assert not world.verify().clean, (field, at)
            world.log.records[0][at], world.log.more[0, at] = saved
    return True


METADATA = '"metadata":{"topic":"verified","partition":0,"offset":%d,"timestamp":1795150800000}'
LINES = "".join(
    line + "\n"
    for line in (
        '{"key":"aw==","value":{"n": 1},"headers":{"a":"1","b-c":null},' + METADATA % 0 + ',"keyIsArray":true}',
        '{"key":null,"value":{"n":2.50},"headers":{},' + METADATA % 1 + "}",
        '{"key":"","value":{ "n":3,"y":[]},"headers":{"a":["1","3"],"b":"2"},'
        + METADATA % 2
        + ',"keyIsArray":true,"headersOrder":["a","b","a"]}',
        '{"key":"xYHDs2TFug==","value":{"n":4},"headers":{"a":[{"base64":"/w=="},""]},'
        + METADATA % 3
        + ',"keyIsArray":true}',
    )
)
"""The records in JSON with an envelope of style `record`, and keys of bytes."""


def flat(*fields: str, **more: Any) -> dict[str, Any]:
    return {"style": "flat", "fields": fields, **more}


FLAT: list[Record] = [
    (b"k,", b'{"n": 1}', [("h", b"1"), ("h", None)]),
    (None, b'{"n":2,"m":[1,2]}', []),
    (b'"', None, [("a", b"x"), ("b", b"y"), ("a", b"z")]),
]
ONLY_KEYS: list[Record] = [(b'{"a":\n1}', b"\0\xff", []), (None, None, []), (b'"k"', b"", [])]
ONLY_HEADERS: list[Record] = [
    (None, b"1", [("a", b"1"), ("a", b"2"), ("b", b"3")]),
    (None, b"1", [("reason-for-dlq", b'wave "hi"'), ("größe", b"\xff")]),
    (None, b"1", [("", b"x"), ('"', b"y")]),
]


@pytest.mark.parametrize(
    ("records", "sink", "body"),
    [
        pytest.param(RECORDS, {"envelope": {}, "converter": {"key": "bytes"}}, LINES, id="record"),
        pytest.param(
            ONLY_KEYS,
            {"envelope": {"fields": ["value", "key"]}, "converter": {"key": "json", "value": "bytes"}},
            '{"value":"AP8=","key":{"a": 1},"valueIsArray":true}\n{"value":null,"key":null}\n'
            '{"value":"","key":"k","valueIsArray":true}\n',
            id="record of bytes",
        ),
        pytest.param(
            ONLY_HEADERS,
            {"envelope": {"fields": ["headers"]}},
            '{"headers":{"a":["1","2"],"b":"3"}}\n'
            '{"headers":{"reason-for-dlq":"wave \\"hi\\"","größe":{"base64":"/w=="}}}\n'
            '{"headers":{"":"x","\\"":"y"}}\n',
            id="record of headers",
        ),
        pytest.param(
            FLAT,
            {"envelope": flat("headers", "offset", "timestamp", "key", "value")},
            '{"headers":[{"key":"h","value":"1"},{"key":"h","value":null}],"offset":0,'
            '"timestamp":"2026-11-20T05:00:00Z","key":"k,","value":{"n": 1}}\n'
            '{"headers":[],"offset":1,"timestamp":"2026-11-20T05:00:00Z","key":null,"value":{"n":2,"m":[1,2]}}\n'
            '{"headers":[{"key":"a","value":"x"},{"key":"b","value":"y"},{"key":"a","value":"z"}],"offset":2,'
            '"timestamp":"2026-11-20T05:00:00Z","key":"\\"","value":null}\n',
            id="flat",
        ),
        pytest.param(
            FLAT,
            {"envelope": flat("value", bare=True), "format": {"type": "json_array"}, "converter": {"value": "bytes"}},
            '[\n"eyJuIjogMX0=",\n"eyJuIjoyLCJtIjpbMSwyXX0=",\nnull\n]',
            id="flat, bare",
        ),
        pytest.param(
            RECORDS,
            {"envelope": flat("value", "key", "timestamp", "offset", "headers"), "format": {"type": "csv"}},
            "eyJuIjogMX0=,aw==,1795150800000,0,YQ==:MQ==;Yi1j:;\neyJuIjoyLjUwfQ==,,1795150800000,1,\n"
            "ewoibiI6MywieSI6W119,,1795150800000,2,YQ==:MQ==;Yg==:Mg==;YQ==:Mw==;\n"
            "eyJuIjo0fQ==,xYHDs2TFug==,1795150800000,3,YQ==:/w==;YQ==:;\n",
            id="flat in csv",
        ),
        pytest.param(
            FLAT,
            {"envelope": flat("key", "value", "offset", value_encoding="none"), "format": {"type": "csv"}},
            'ayw=,{"n": 1},0\n,{"n":2,"m":[1,2]},1\nIg==,,2\n',
            id="flat in csv as it is",
        ),
        pytest.param(
            FLAT,
            {"envelope": {"style": "iggy", "fields": ["metadata", "headers", "value"], "stream": "s"}},
            '{"offset":0,"timestamp":"2026-11-20T05:00:00Z","stream":"s","topic":"verified","partition_id":0,'
            '"headers":{"h":["1",null]},"payload":{"n": 1}}\n'
            '{"offset":1,"timestamp":"2026-11-20T05:00:00Z","stream":"s","topic":"verified","partition_id":0,'
            '"payload":{"n":2,"m":[1,2]}}\n'
            '{"offset":2,"timestamp":"2026-11-20T05:00:00Z","stream":"s","topic":"verified","partition_id":0,'
            '"headers":{"a":["x","z"],"b":"y"},"payload":null,"headersOrder":["a","b","a"]}\n',
            id="iggy",
        ),
        pytest.param(
            FLAT,
            {
                "envelope": {"style": "iggy", "fields": ["value"]},
                "format": {"type": "json_array", "framing": {"opening": "[", "between": ",", "closing": "]"}},
            },
            '[{"n": 1},{"n":2,"m":[1,2]},null]',
            id="iggy payloads",
        ),
    ],
)
def test_a_file_with_an_envelope_has_these_bytes_and_any_change_is_found(
    records: list[Record], sink: dict[str, Any], body: str
) -> None:
    world = VerifiedTopic(nulls="write", **sink)
    stage_records(world, records)
    (file,) = world.manifests["c1"].files
    assert world.store.objects[file.key][0].decode() == body
    assert finds_any_change(world)


def landed_records(lines: str = LINES) -> VerifiedTopic:
    world = world_of(RECORDS, envelope={}, converter={"key": "bytes"})
    world.landed_as(lines.encode())
    return world


def test_a_commit_is_counted_if_the_client_cannot_read_the_headers_of_a_record() -> None:
    world = landed_records()
    world.log.more[0, 1] = (None, UNREADABLE)
    report = world.verify()
    assert (report.clean, report.compared, report.not_compared) == (True, 0, 4)
    assert report.counted_reasons == ("the headers of offset 1 cannot be read: a name is not UTF-8",)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (',"keyIsArray":true', ""),
        (',"headersOrder":["a","b","a"]', ""),
        ('"offset":0', '"offset":7'),
        ('"topic":"verified"', '"topic":"other"'),
        ('{"key":', '{"more":1,"key":'),
        ('"value":{"n": 1},', ""),
        ('{"a":"1","b-c":null}', '{"b-c":null,"a":"1"}'),
    ],
)
def test_a_changed_envelope_is_found(old: str, new: str) -> None:
    assert old in LINES
    assert not landed_records(LINES.replace(old, new, 1)).verify().clean


def test_a_tombstone_in_parquet_differs_from_an_empty_value() -> None:
    world = VerifiedTopic(envelope={}, format={"type": "parquet"}, nulls="write")
    stage_records(world, [(b"k", None, []), (b"k", b"{}", [("a", None)]), (b"k", b'{"n":1}', [])])
    assert finds_any_change(world)
    log = world.log.records[0]
    log[0], log[1] = log[1], log[0]
    assert world.verify().missing == 2


def test_a_column_that_no_file_has_must_hold_nothing() -> None:
    world = world_of(
        [(b"null", b'{"n":1}', [])],
        envelope={"fields": ["key", "value"]},
        format={"type": "parquet"},
        converter={"key": "json"},
    )
    world.landed_as(parquet([{"value": {"n": 1.0}}], pa.schema([("value", pa.struct([("n", pa.float64())]))])))
    assert world.verify().clean
    world.log.more[0, 0] = (b"1", ())
    assert not world.verify().clean


VALUE_LINES = b'{"n": 1}\n{"n":2.50}\n{ "n":3,"y":[]}\n{"n":4}\n'
KEY_LINES = b'"k"\nnull\n""\n"\xc5\x81\xc3\xb3d\xc5\xba"\n'
SIDECAR_RECORDS: list[Record] = [(*record[:2], [(name, b"1") for name, _ in record[2]]) for record in RECORDS]
HEADER_LINES = b"".join(
    json.dumps({"headers": [{"key": name, "value": "1"} for name, _ in headers]}).encode() + b"\n"
    for _, _, headers in SIDECAR_RECORDS
)


def test_sidecars_hold_each_record_s_key_and_headers() -> None:
    world = world_of(SIDECAR_RECORDS, sidecars={"keys": "json", "headers": "json"})
    world.landed_as(VALUE_LINES, keys=KEY_LINES, headers=HEADER_LINES)
    report = world.verify()
    assert report.clean, report.differences
    assert (report.landed, report.files) == (4, 3)
    for change in ((b"other", SIDECAR_RECORDS[1][2]), (None, [("other", b"1")])):
        world.log.more[0, 1] = change
        assert not world.verify().clean


def test_sidecars_in_another_order_are_found() -> None:
    world = world_of(SIDECAR_RECORDS, sidecars={"keys": "json"})
    lines = KEY_LINES.splitlines(keepends=True)
    world.landed_as(VALUE_LINES, keys=b"".join([lines[1], lines[0], *lines[2:]]))
    assert world.verify().missing == 2


@pytest.mark.parametrize("keys", [KEY_LINES[:-5], KEY_LINES + b'"more"\n', None])
def test_sidecars_with_another_number_of_records_are_found(keys: bytes | None) -> None:
    world = world_of(SIDECAR_RECORDS, sidecars={"keys": "json"})
    sidecars: dict[str, Any] = {} if keys is None else {"keys": keys}
    world.landed_as(VALUE_LINES, **sidecars)
    assert not world.verify().clean


def test_keys_as_they_are_may_hold_newlines() -> None:
    records: list[Record] = [(b"a\nb", b"1", []), (b"c", b"2", [])]
    world = world_of(records, sidecars={"keys": "bytes"})
    world.landed_as(b"1\n2\n", keys=b"a\nb\nc\n")
    assert world.verify().clean, world.verify().differences
    world.log.more[0, 1] = (b"d", ())
    assert "is not what records 0 to 1 make together" in " ".join(texts(world.verify(), "object"))


def test_records_without_a_value_may_have_only_a_sidecar() -> None:
    records: list[Record] = [(b"a", b"1", []), (b"b", None, []), (b"c", b"2", []), (b"d", None, [])]
    world = world_of(records, sidecars={"keys": "json"}, nulls="write")
    world.landed_as(b"1\n2\n", records=2, keys=b'"a"\n"c"\n')
    tombstones = world.file("c1", b'"b"\n"d"\n', 1, 3, records=2, stream="keys", name="-tombstones")
    manifest = world.manifests["c1"]
    read = manifest.partitions[0]
    world.change(
        "c1", files=(*manifest.files, tombstones), partitions={0: msgspec.structs.replace(read, landed=4, skipped=0)}
    )
    report = world.verify()
    assert report.clean, report.differences
    assert (report.landed, report.skipped) == (4, 0)
    world.log.more[0, 3] = (b"other", ())
    assert world.verify().missing == 1


# What is only counted


def test_a_sink_that_keeps_the_last_record_of_each_key_is_counted() -> None:
    world = VerifiedTopic(layout={"template": "{topic}/{key}"}, exactly_once=False)
    for value in (b"1", b"2", b"3"):
        world.record(value, b"k")
    world.landed_as(b"3\n", records=3)
    world.change("c1", files=(msgspec.structs.replace(world.manifests["c1"].files[0], records=1),))
    report = world.verify()
    assert (report.differences, report.clean, report.not_compared) == ((), True, 3)
    assert "keeps the last record" in report.counted_reasons[0]
