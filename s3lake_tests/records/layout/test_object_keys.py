"""Object keys of one rule: groups, hostile values, lengths, marks, sidecars. Vectors are in files of their own."""

import json
import pickle
import string
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from s3lake.config import native
from s3lake.land.request import stage_values
from s3lake.records.layout.object_keys import MAX_KEY_BYTES, FileNumbers, KeyLayout, RecordColumns
from s3lake.records.layout.pieces import NoObjectKeyError
from s3lake_tests.records.layout import files
from s3lake_tests.records.layout.files import LaidOutRecord

ROOT = "streamReactorBackups"


def rule(
    *partition_by: str, topic: str = "myTopic", renamed: str = "", key: str = "string", **changes: Any
) -> KeyLayout:
    layout = {"partition_by": partition_by, **changes.pop("layout", {})}
    sink = {"prefix": ROOT, "converter": {"key": key}, "layout": layout, **changes}
    return files.rule(renamed, topics=(topic,), **sink)


def template(text: str, *, topic: str = "myTopic", renamed: str = "", **changes: Any) -> KeyLayout:
    """A rule without a prefix, whose records may replace each other."""
    layout = {"template": text, **changes.pop("layout", {})}
    sink = {"exactly_once": False, "layout": layout, **changes}
    return files.rule(renamed, topics=(topic,), **sink)


def refusal(keys: KeyLayout, **record: Any) -> str:
    return files.refusal(keys, LaidOutRecord(partition=1, **record))


def key(keys: KeyLayout, offset: int = 0, **record: Any) -> str:
    (made,) = files.files(keys, LaidOutRecord(offset, partition=1, **record))
    return made


def directory(keys: KeyLayout, **record: Any) -> str:
    return key(keys, **record).rpartition("/")[0]


# Groups


def test_records_of_a_topic_partition_whose_keys_differ_in_numbers_only_share_a_group() -> None:
    keys = rule("_key")
    one, other, third = keys.groups(1, RecordColumns(keys=[b"a", b"a", b"b"]), 3)
    assert one == other != third
    assert [one] != keys.groups(2, RecordColumns(keys=[b"a"]), 1)


def test_topic_and_partition_alone_are_the_same_for_every_record() -> None:
    assert rule("_topic", "_partition").fixed_group(3) is not None
    assert rule().fixed_group(3) is not None
    assert rule("_topic", "a").fixed_group(3) is None


def test_a_layout_knows_which_parts_of_a_record_it_needs() -> None:
    keys = template("{field:a}/{key}/{header:h}/{time:yyyy}/{schema}/{partition}-{offset}")
    assert [keys.needs(source) for source in ("value", "key", "header", "timestamp", "schema")] == [True] * 5
    plain = template("{partition}-{offset}")
    assert not any(plain.needs(source) for source in ("value", "key", "header", "timestamp", "schema"))
    by_field = template("{time:yyyy}/{partition}-{offset}", layout={"time": {"source": "field"}})
    assert (by_field.needs("value"), by_field.needs("timestamp")) == (True, False)
    assert not template("{time:yyyy}/{offset}", layout={"time": {"source": "wallclock"}}).needs("timestamp")


def test_wallclock_is_the_micro_batchs_in_its_zone_and_the_same_for_every_record() -> None:
    time = {"source": "wallclock", "timezone": "Europe/Berlin"}
    layout = {"template": "{time:yyyy-MM-dd}/{partition}-{offset}", "time": time}
    keys = files.rule(wallclock_ms=files.ms(2024, 1, 14, 23, 30), layout=layout)
    assert keys.fixed_group(3) is not None
    assert key(keys, 7, timestamp=0) == "2024-01-15/1-7.json"


@pytest.mark.parametrize("name", ["last_offset", "min_timestamp", "max_timestamp", "records"])
def test_a_number_of_the_closed_file_defers_its_key(name: str) -> None:
    assert template(f"{{offset}}-{{{name}}}").deferred
    assert not template("{partition}-{offset}").deferred


def test_a_key_contains_the_numbers_of_the_closed_file() -> None:
    keys = template("{topic}/{partition}/{offset}-{last_offset}_{min_timestamp}-{max_timestamp}_{records:03}")
    group = keys.fixed_group(4)
    assert group is not None
    assert keys.key(group, FileNumbers(10, 19, -1, 99, 7)) == "myTopic/4/10-19_-1-99_007.json"


@pytest.mark.parametrize(
    ("text", "replaces"),
    [("{key}", True), ("{topic}/{partition}/{key}", True), ("{topic}/{offset}", False), ("{key}-{last_offset}", False)],
)
def test_keys_without_an_offset_replace_earlier_objects(text: str, replaces: bool) -> None:
    assert template(text).replaces is replaces


def test_a_refused_record_leaves_the_others_in_place() -> None:
    groups = rule("_key").groups(1, RecordColumns(keys=[b"a", None, b"b", b"..", b"a"]), 5)
    assert [isinstance(one, str) for one in groups] == [True, False, True, False, True]
    assert groups[0] == groups[4] != groups[2]


def test_a_rule_travels_to_the_workers() -> None:
    keys = rule("a", "_date.yyyy")
    assert pickle.loads(pickle.dumps(keys)) == keys
    by_template = template("{time:yyyy}/{key}/{partition}-{offset}{extension}")
    assert pickle.loads(pickle.dumps(by_template)) == by_template


# Marks, sidecars, tombstones, dead letters

MARK = "~1f2e3d4c5b6a"
NO_EXTENSION = {"extension": ""}


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (template("{partition}-{offset}", renamed=MARK), f"1-0{MARK}.json"),
        (template("{partition}-{offset}{extension}.bak", renamed=MARK), f"1-0{MARK}.json.bak"),
        (template("{partition}-{offset}.gz", renamed=MARK), f"1-0.gz{MARK}.json"),
        (template("{partition}-{offset}", renamed=MARK, layout=NO_EXTENSION), f"1-0{MARK}"),
        (template("{partition}-{offset}.gz", renamed=MARK, layout=NO_EXTENSION), f"1-0{MARK}.gz"),
        (template("{partition}-{offset}.csv.gz", renamed=MARK, layout=NO_EXTENSION), f"1-0.csv{MARK}.gz"),
        (template("v1.0/{partition}-{offset}", renamed=MARK, layout=NO_EXTENSION), f"v1.0/1-0{MARK}"),
        (template("{partition}.{offset}", renamed=MARK, layout=NO_EXTENSION), f"1.0{MARK}"),
        (rule(renamed=MARK), f"{ROOT}/myTopic/1/000000000000{MARK}.json"),
        (
            rule("a", renamed=MARK, layout={"suffix": "-s"}),
            f"{ROOT}/myTopic/a=1/myTopic(1_000000000000)-s{MARK}.json",
        ),
    ],
)
def test_a_replacing_commit_marks_the_end_of_the_file_name(keys: KeyLayout, expected: str) -> None:
    assert key(keys, value=b'{"a":1}') == expected


@pytest.mark.parametrize(
    ("renamed", "expected"),
    [("", "myTopic+1+0000000005.keys.avro"), (MARK, f"myTopic+1+0000000005{MARK}.keys.avro")],
)
def test_a_sidecar_has_the_stem_of_its_file(renamed: str, expected: str) -> None:
    keys = template("{topic}+{partition}+{offset:010}", renamed=renamed, layout={"extension": ".snappy.parquet"})
    group = keys.fixed_group(1)
    assert group is not None
    assert keys.key(group, FileNumbers(5, 9, 0, 0, 5), ".keys.avro") == expected


@pytest.mark.parametrize(("by", "is_fixed"), [("{key}", False), ("all", True)])
def test_records_without_a_value_may_have_keys_of_their_own(by: str, is_fixed: bool) -> None:
    layout = {"tombstones": f"t/tombstone/{by}/{{partition}}+{{offset}}"}
    keys = template("t/{field:a}/{partition}+{offset}", nulls="write", sidecars={"keys": "json"}, layout=layout)
    assert keys.has_tombstones
    assert (keys.needs("value"), keys.needs("key")) == (True, not is_fixed)
    one, other = keys.groups(1, RecordColumns(keys=[b"k", b"l"]), 2, tombstones=True)
    assert isinstance(one, str)
    assert (one == other) == is_fixed
    step = "all" if is_fixed else "k"
    assert keys.key(one, FileNumbers(2, 2, 0, 0, 1), ".keys.json") == f"t/tombstone/{step}/1+2.keys.json"
    assert not rule().has_tombstones


def test_dead_letters_have_a_place_of_their_own() -> None:
    expected = f"{ROOT}/_dead_letters/events/myTopic/1/000000000007.json"
    assert rule("a", format={"codec": "gzip"}).dead_letters_key(1, 7) == expected


# Values


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/etc", "a=/etc"),
        ("2026/11/20", "a=2026/11/20"),
        ("a=b", "a=a=b"),
        ("", "a="),
        ("a\nb", "a=a\\nb"),
        ("héllo wörld 🚀", "a=héllo wörld 🚀"),
        ("%2F", "a=%2F"),
        ("...", "a=..."),
        ("a..b", "a=a..b"),
        ("back\\slash", "a=back\\slash"),
    ],
)
def test_values_are_kept_as_they_are(value: str, expected: str) -> None:
    data = '{"a":' + json.dumps(value) + "}"
    assert directory(rule("a"), value=data.encode()) == f"{ROOT}/myTopic/{expected}"


FLAT = rule("_key", layout={"include_keys": False})
WRITE_IT = "have the producer write it, or lay out by another element"
WRITE_ANOTHER = "have the producer write another text, or lay out by another element"
TAKE_A_FIELD = "lay out by one of its fields, or by another element"
STEP, CONTROL, EMPTY = "holds a path step", "holds a control character", "would hold an empty step"


@pytest.mark.parametrize(
    ("keys", "value", "why"),
    [
        *(
            (keys, value, STEP)
            for keys in (rule("_key"), FLAT)
            for value in (b"..", b".", b"../../x", b"a/../b", b"a/.", b"./a")
        ),
        (template("{topic}/.{key}/{offset}"), b"", "has another meaning"),
        (template("{topic}/{key}./{offset}"), b"a/", "has another meaning"),
        (template("{topic}/_dead{key}/{offset}"), b"_letters", "has another meaning"),
        *((rule("_key"), value, CONTROL) for value in (b"\x00", b"a\rb", b"\x1b[31m", b"\x7f", b"\t")),
        *((rule("_key"), char.encode(), CONTROL) for char in ("\ufffe", "\uffff")),
        # Clients leave empty steps out.
        *((FLAT, value, EMPTY) for value in (b"", b"/etc", b"a/")),
        *((rule("_key"), value, EMPTY) for value in (b"a//b", b"a/")),
        (template("{key}/{offset}"), b"", EMPTY),
        (template("{key}-{offset}"), b"/a", EMPTY),
        (template("/{key}-{offset}"), b"/a", EMPTY),
        (template("{offset}/{key}", layout=NO_EXTENSION), b"", EMPTY),
        (template("{key}", layout=NO_EXTENSION), b"", f"its object key would be empty: {WRITE_ANOTHER}"),
    ],
)
def test_a_value_that_makes_no_key_is_refused(keys: KeyLayout, value: bytes, why: str) -> None:
    reason = refusal(keys, key=value)
    assert why in reason
    assert reason.endswith(WRITE_ANOTHER)


@pytest.mark.parametrize(
    ("keys", "value", "why"),
    [
        (template("{key}/{offset}"), b".indexes/events", "would lie in the index '.indexes/'"),
        (
            template("{key}/{offset}", prefix="raw", index={"prefix": "raw/ix"}),
            b"ix",
            "would lie in the index 'raw/ix/'",
        ),
        (template("{key}/{offset}"), b"_dead_letters/events", "has another meaning"),
        (template("{key}/{offset}"), b".probe/1800000000-x", "has another meaning"),
        (rule("_key", layout={"include_keys": False, "connector_names": True}, prefix=""), b".indexes", "in the index"),
    ],
)
def test_a_value_that_leads_into_an_index_is_refused(keys: KeyLayout, value: bytes, why: str) -> None:
    assert why in refusal(keys, key=value)


@pytest.mark.parametrize(
    "value", [b"idxb/b/u/2026-11-21T20", b"deep/er/a", b".indexes/x", b"y/.indexes-old/u/x", b"x/.indexes"]
)
def test_a_key_cannot_lead_into_the_index_of_another_sink_of_the_bucket(value: bytes) -> None:
    config = native.load_text(
        """
kafka: {bootstrap_servers: 'x:1'}
sinks:
  - {name: a, topics: [t], bucket: lake, prefix: raw, start: 2026-11-21T18, index: {prefix: mine},
     layout: {template: "{key}/{partition}/{offset}"}}
  - {name: b, topics: [u], bucket: lake, prefix: b, start: 2026-11-21T18, index: {prefix: raw/idxb}}
  - {name: c, topics: [u], bucket: lake, prefix: c, start: 2026-11-21T18, index: {prefix: raw/deep/er}}
  - {name: d, topics: [u], bucket: other, prefix: d, start: 2026-11-21T18, index: {prefix: raw/elsewhere}}
""",
        "f",
    )
    keys = stage_values.build_key_layout(config.sink("a").after_transforms, "t")
    assert "index" in refusal(keys, key=value)
    assert key(keys, key=b"elsewhere/x") == "raw/elsewhere/x/1/0.json"


@pytest.mark.parametrize("topic", [".indexes", "_dead_letters", ".probe"])
def test_a_topic_cannot_lead_there_either(topic: str) -> None:
    keys = rule(topic=topic, prefix="")
    assert keys.fixed_group(0) is None
    assert all(isinstance(one, NoObjectKeyError) for one in keys.groups(0, RecordColumns(), 2))


@pytest.mark.parametrize(
    ("keys", "record", "why"),
    [
        (rule("_key"), {"key": None}, f"the record has no key: {WRITE_IT}"),
        (rule("_key"), {"key": b"\xff"}, f"the key is not UTF-8: {WRITE_ANOTHER}"),
        (rule("_key", key="json"), {"key": b"{"}, "the key is not JSON"),
        (rule("_key", key="json"), {"key": b"null"}, f"the key is null, not a primitive: {TAKE_A_FIELD}"),
        (rule("_key", key="json"), {"key": b"{}"}, f"the key is an object, not a primitive: {TAKE_A_FIELD}"),
        (rule("_key.a", key="json"), {"key": b"[1]"}, f"the key is a list, not a primitive: {TAKE_A_FIELD}"),
        (rule("_key.a", key="json"), {"key": b'{"a":[]}'}, f"key field a is a list, not a primitive: {TAKE_A_FIELD}"),
        (rule("_header.hair"), {"headers": ()}, f"header 'hair' is not in the record: {WRITE_IT}"),
        (rule("_header.hair"), {"headers": (("Hair", b"x"),)}, f"header 'hair' is not in the record: {WRITE_IT}"),
        (rule("_header.hair"), {"headers": (("hair", None),)}, f"header 'hair' is null: {WRITE_IT}"),
        (rule("_header.hair"), {"headers": (("hair", b"\xff"),)}, f"header 'hair' is not UTF-8: {WRITE_ANOTHER}"),
        (rule("_header.h.a"), {"headers": (("h", b"x"),)}, "header 'h' is not JSON"),
        (rule("a"), {"value": b'{"a":{}}'}, f"field a is an object, not a primitive: {TAKE_A_FIELD}"),
        (rule("a.b"), {"value": b'{"a":{"b":[1]}}'}, f"field a.b is a list, not a primitive: {TAKE_A_FIELD}"),
        (rule("a"), {"value": b'{"a":1e999}'}, "the value is not JSON: Number out of range"),
        (rule("_date.yyyy"), {"timestamp": -1}, "the record has no date"),
        (rule("_date.yyyy"), {"timestamp": 2**60}, "the record has no date"),
        (template("{time:yyyy}/{offset}"), {"timestamp": -1}, "timestamp is -1, none; lay out by a time in a field"),
        (template("{time:yyyy}/{offset}"), {"timestamp": 2**60}, "the record has no date"),
        (
            template("{time:yyyy}/{offset}", layout={"time": {"source": "field", "field": "at"}}),
            {"value": b'{"at":"soon"}'},
            "time field at is 'soon', which is not a time",
        ),
        (
            template("{time:yyyy}/{offset}", layout={"time": {"source": "field", "field": "at"}}),
            {"value": b'{"at":9223372036854775807}'},
            "time field at has no date",
        ),
        (
            template("{time:yyyy}/{offset}", layout={"time": {"source": "field", "field": "at"}}),
            {"value": b'{"at":1705314600123456}'},
            "If the number is in microseconds, set layout.time.unit to microseconds",
        ),
    ],
)
def test_a_record_without_a_directory_is_refused_with_the_reason(
    keys: KeyLayout, record: dict[str, Any], why: str
) -> None:
    assert why in refusal(keys, **record)


@pytest.mark.parametrize(
    ("keys", "record", "expected"),
    [
        (template("100%/{key}%s/{offset}%", layout=NO_EXTENSION), {"key": b"%d"}, "100%/%d%s/0%"),
        # The sink's own prefix may begin like an index.
        (template("{key}/{offset}", prefix="raw/.indexes-of-books"), {"key": b"x"}, "raw/.indexes-of-books/x/0.json"),
        (template("{header:ce.type}/{offset}"), {"headers": (("ce.type", b"order"),)}, "order/0.json"),
        # The last of several headers counts.
        (
            template("{header:region}/{offset}"),
            {"headers": (("region", b"eu"), ("other", b"x"), ("region", b"us"))},
            "us/0.json",
        ),
        (
            rule("_header.trace.tenant", "_header.trace.user"),
            {"headers": (("trace", b'{"tenant":"acme"}'),)},
            f"{ROOT}/myTopic/trace.tenant=acme/trace.user=[missing]/myTopic(1_000000000000).json",
        ),
    ],
)
def test_a_record_has_its_key(keys: KeyLayout, record: dict[str, Any], expected: str) -> None:
    assert key(keys, **record) == expected


# Length


@pytest.mark.parametrize("renamed", ["", MARK])
def test_a_key_may_have_1024_bytes_and_no_more(renamed: str) -> None:
    keys = rule("_key", prefix="", topic="t", renamed=renamed)
    groups = keys.groups(2**31 - 1, RecordColumns(keys=[b"x" * length for length in range(1, 1025)]), 1024)
    longest = [one for one in groups if isinstance(one, str)][-1]
    assert "its object key would exceed 1024 bytes" in str(groups[-1])
    made = keys.key(longest, FileNumbers(2**63 - 1, 2**63 - 1, 0, 0, 1))
    assert len(made) + len(MARK) - len(renamed) == MAX_KEY_BYTES


def test_the_length_of_a_key_is_counted_in_bytes() -> None:
    assert "would exceed 1024 bytes" in refusal(rule("_key"), key=("ü" * 500).encode())


def test_the_longest_sidecar_fits() -> None:
    keys = template("{key}-{offset}", sidecars={"headers": "parquet"})
    groups = keys.groups(0, RecordColumns(keys=[b"x" * length for length in range(900, 1025)]), 125)
    longest = [one for one in groups if isinstance(one, str)][-1]
    made = keys.key(longest, FileNumbers(2**63 - 1, 2**63 - 1, 0, 0, 1), ".headers.parquet")
    assert len(made) + len(MARK) == MAX_KEY_BYTES


def test_the_longest_default_key_fits() -> None:
    layout = {"suffix": "s" * 64, "include_keys": True, "padding": {"partition": 64, "offset": 64}}
    keys = rule(topic="t" * 249, prefix="p" * 480, renamed=MARK, layout=layout, format={"codec": "gzip"})
    group = keys.fixed_group(2**31 - 1)
    assert group is not None
    assert len(keys.key(group, FileNumbers(2**63 - 1, 2**63 - 1, 0, 0, 1))) <= MAX_KEY_BYTES
    assert len(keys.dead_letters_key(2**31 - 1, 2**63 - 1)) <= MAX_KEY_BYTES


# Every value


KEYED = [
    rule("_key"),
    rule("_key", layout={"include_keys": False}),
    template("{key}/{partition}-{offset}", renamed=MARK),
]


@given(st.text(max_size=300), st.sampled_from(KEYED))
@example("a/../b", KEYED[0])
@example("\ud800", KEYED[0])
def test_every_value_gets_a_key_that_a_store_can_hold_or_a_reason(value: str, keys: KeyLayout) -> None:
    record = LaidOutRecord(key=value.encode("utf-8", "surrogatepass"), partition=1)
    found = files.group(keys, record)
    if isinstance(found, NoObjectKeyError):
        assert str(found)
        return
    made = keys.key(found, FileNumbers(0, 0, 0, 0, 1))
    assert len(made.encode()) <= MAX_KEY_BYTES
    assert not set(made) & set(map(chr, range(32)))
    assert not {"", ".", ".."} & set(made.split("/"))


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 10**12), st.text(string.ascii_letters + "=-_()1", max_size=3)),
        min_size=1,
    ),
    st.sampled_from([rule("_key"), template("{key}/{partition}-{offset}")]),
)
def test_two_files_never_share_a_key(made_of: list[tuple[int, int, str]], keys: KeyLayout) -> None:
    made = {}
    for partition, offset, text in made_of:
        found = files.group(keys, LaidOutRecord(key=text.encode(), partition=partition))
        if isinstance(found, str):
            made[partition, offset, text] = keys.key(found, FileNumbers(offset, offset, 0, 0, 1))
    assert len(set(made.values())) == len(made)
