"""Object keys: the reference's vectors (lenses.md 1.6) under the document's rules, and hostile values."""

import json
import pickle
import string
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from s3lake.layout.key import MAX_KEY_BYTES, Fields, KeyRule
from s3lake.layout.partitioners import Unplaceable
from s3lake.sink import Sink

ROOT = "streamReactorBackups"
BOTH_12 = {"padding": {"partition": 12, "offset": 12}}


def rule(
    *partition_by: str,
    topic: str = "myTopic",
    prefix: str = ROOT,
    renamed: str = "",
    key: str = "string",
    **layout: Any,
) -> KeyRule:
    sink = Sink(
        name="backups",
        topics=(topic,),
        bucket="lake",
        prefix=prefix,
        start="2026-11-20T00",
        converter={"key": key},  # type: ignore[arg-type]
        format=layout.pop("format", {}),
        layout={"partition_by": partition_by, **layout},  # type: ignore[arg-type]
    )
    return KeyRule.of(sink, topic, renamed)


def placed(keys: KeyRule, partition: int, /, **fields: Any) -> str | Unplaceable:
    """The directory of one record."""
    records = Fields(**{name: [value] for name, value in fields.items()})
    (directory,) = keys.directories(partition, records, 1)
    return directory


def key(keys: KeyRule, partition: int = 1, offset: int = 0, /, **fields: Any) -> str:
    """The key of a file that begins with one record."""
    directory = keys.fixed_directory(partition) or placed(keys, partition, **fields)
    assert isinstance(directory, str), directory
    return keys.key(directory, partition, offset)


def refusal(keys: KeyRule, /, **fields: Any) -> str:
    directory = placed(keys, 1, **fields)
    assert isinstance(directory, Unplaceable), directory
    return str(directory)


def header(name: str, value: bytes | None) -> dict[str, Any]:
    return {"key": name, "value": value}


# The default layout


@pytest.mark.parametrize(
    ("keys", "partition", "offset", "expected"),
    [
        pytest.param(rule(), 1, 0, f"{ROOT}/myTopic/1/000000000000.json", id="1 and 2"),
        pytest.param(rule(), 1, 2, f"{ROOT}/myTopic/1/000000000002.json", id="2"),
        pytest.param(rule(format={"type": "parquet"}), 1, 1, f"{ROOT}/myTopic/1/000000000001.parquet", id="4"),
        pytest.param(rule(**BOTH_12), 1, 1, f"{ROOT}/myTopic/000000000001/000000000001.json", id="23"),
        pytest.param(
            rule(**BOTH_12, topic="myTopic2"), 1, 2, f"{ROOT}/myTopic2/000000000001/000000000002.json", id="28"
        ),
        pytest.param(rule(format={"codec": "gzip"}), 1, 0, f"{ROOT}/myTopic/1/000000000000.json.gz", id="32"),
        pytest.param(
            rule(padding={"offset": 0}, suffix="-my-suffix"), 1, 2, f"{ROOT}/myTopic/1/2-my-suffix.json", id="34"
        ),
        pytest.param(rule(include_keys=True), 1, 2, f"{ROOT}/topic=myTopic/partition=1/000000000002.json", id="37"),
        # The offset's padding has its own default, whatever else is given.
        pytest.param(rule(padding={"partition": 12}), 1, 2, f"{ROOT}/myTopic/000000000001/000000000002.json", id="38"),
        pytest.param(rule(prefix=""), 0, 0, "myTopic/0/000000000000.json", id="no prefix"),
        pytest.param(rule(prefix="a/b/"), 0, 0, "a/b/myTopic/0/000000000000.json", id="a deep prefix"),
        pytest.param(rule(), 1, 2**63 - 1, f"{ROOT}/myTopic/1/9223372036854775807.json", id="the largest offset"),
    ],
)
def test_the_default_layout(keys: KeyRule, partition: int, offset: int, expected: str) -> None:
    assert key(keys, partition, offset) == expected


# PARTITIONBY

FIRST = b'{"name":"first","title":"primary","salary":200.0}'


@pytest.mark.parametrize(
    ("keys", "fields", "expected"),
    [
        pytest.param(
            rule("name", "title", "salary"),
            {"values": b'{"name":"first","title":null,"salary":200.0}'},
            "name=first/title=[missing]/salary=200.0/myTopic(1_000000000003).json",
            id="10",
        ),
        pytest.param(
            rule("name", "title"), {"values": FIRST}, "name=first/title=primary/myTopic(1_000000000003).json", id="11"
        ),
        pytest.param(
            rule("_header.phonePrefix", "_header.region"),
            {"headers": [header("phonePrefix", b"+44"), header("region", b"8")]},
            "phonePrefix=+44/region=8/myTopic(1_000000000003).json",
            id="13",
        ),
        pytest.param(
            rule("_header.headerPartitionKey", "_value.name"),
            {"headers": [header("headerPartitionKey", b"0")], "values": FIRST},
            "headerPartitionKey=0/name=first/myTopic(1_000000000003).json",
            id="14",
        ),
        pytest.param(rule("_key"), {"keys": b"0"}, "key=0/myTopic(1_000000000003).json", id="16"),
        pytest.param(rule("_key", include_keys=False), {"keys": b"1"}, "1/myTopic(1_000000000003).json", id="17"),
        pytest.param(
            rule("_topic", "_partition", include_keys=False, **BOTH_12),
            {},
            "myTopic/000000000001/myTopic(000000000001_000000000003).json",
            id="19",
        ),
        pytest.param(
            rule("_key.region", "_key.phonePrefix", key="json", **BOTH_12),
            {"keys": b'{"phonePrefix":"+44","region":8}'},
            "region=8/phonePrefix=+44/myTopic(000000000001_000000000003).json",
            id="20, in the order of the clause",
        ),
        pytest.param(
            rule("_value.user.name", **BOTH_12),
            {"values": b'{"user":{"name":"laura"}}'},
            "user.name=laura/myTopic(000000000001_000000000003).json",
            id="25",
        ),
        pytest.param(
            rule("_key.favourites.band", key="json"),
            {"keys": b'{"favourites":{"band":"the strokes"}}'},
            "favourites.band=the strokes/myTopic(1_000000000003).json",
            id="26",
        ),
        pytest.param(
            rule("_key.favourites.band", key="json"),
            {"keys": b'{"favourites":{}}'},
            "favourites.band=[missing]/myTopic(1_000000000003).json",
            id="26, missing",
        ),
        pytest.param(
            rule("_date.uuuu", "_date.LL", "_date.dd", include_keys=False, **BOTH_12),
            {"timestamps": 1_270_188_000_000},
            "2010/04/02/myTopic(000000000001_000000000003).json",
            id="29",
        ),
        pytest.param(
            rule("_date.yyyy-MM-dd"),
            {"timestamps": 1_270_188_000_000},
            "date=2010-04-02/myTopic(1_000000000003).json",
            id="29, named",
        ),
        pytest.param(
            rule("_headers.x", "fieldA"),
            {"headers": [header("x", b"1")], "values": b"{}"},
            "x=1/fieldA=[missing]/myTopic(1_000000000003).json",
            id="40, as the document has it",
        ),
    ],
)
def test_partition_by(keys: KeyRule, fields: dict[str, Any], expected: str) -> None:
    assert key(keys, 1, 3, **fields) == f"{ROOT}/myTopic/{expected}"


def test_partition_by_without_a_prefix() -> None:
    keys = rule("_key.region", "name", prefix="", key="json", **BOTH_12)
    assert key(keys, 1, 0, keys=b'{"region":8}', values=b'{"name":"sam"}') == (
        "myTopic/region=8/name=sam/myTopic(000000000001_000000000000).json"
    )


def test_a_suffix_and_padding_with_partition_by() -> None:
    keys = rule("a", topic="my-topic", prefix="prefix", suffix="-my-suffix", padding={"partition": 3, "offset": 3})
    assert key(keys, 9, 81, values=b'{"a":1}') == "prefix/my-topic/a=1/my-topic(009_081)-my-suffix.json"


def test_topic_and_partition_alone_are_the_same_for_every_record() -> None:
    assert rule("_topic", "_partition").fixed_directory(3) == f"{ROOT}/myTopic/topic=myTopic/partition=3"
    assert rule("_topic", "a").fixed_directory(3) is None


def test_a_replacing_commit_ends_the_file_name() -> None:
    assert key(rule(renamed="~1f2e3d4c5b6a"), 1, 0) == f"{ROOT}/myTopic/1/000000000000~1f2e3d4c5b6a.json"
    keys = rule("a", renamed="~1f2e3d4c5b6a", suffix="-s")
    assert key(keys, 1, 0, values=b'{"a":1}').endswith("/myTopic(1_000000000000)-s~1f2e3d4c5b6a.json")


def test_dead_letters_have_a_place_of_their_own() -> None:
    expected = f"{ROOT}/_dead_letters/backups/myTopic/1/000000000007.json"
    assert rule("a", format={"codec": "gzip"}).dead_letters_key(1, 7) == expected


# Values


@pytest.mark.parametrize(
    ("value", "directory"),
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
def test_values_are_kept_as_they_are(value: str, directory: str) -> None:
    data = '{"a":' + json.dumps(value) + "}"
    assert placed(rule("a"), 1, values=data.encode()) == f"{ROOT}/myTopic/{directory}"


@pytest.mark.parametrize("value", ["..", ".", "../../x", "a/../b", "a/.", "./a"])
def test_a_path_step_is_refused(value: str) -> None:
    for include_keys in (True, False):
        assert "holds a path step" in refusal(rule("_key", include_keys=include_keys), keys=value.encode())


@pytest.mark.parametrize("value", [b"\x00", b"a\rb", b"\x1b[31m", b"\x7f", b"\t"])
def test_a_control_character_is_refused(value: bytes) -> None:
    assert "holds a control character" in refusal(rule("_key"), keys=value)


@pytest.mark.parametrize(
    ("keys", "fields", "why"),
    [
        (rule("_key"), {"keys": None}, "the record has no key"),
        (rule("_key"), {"keys": b"\xff"}, "the key is no UTF-8"),
        (rule("_key", key="json"), {"keys": b"{"}, "the key is no JSON"),
        (rule("_key", key="json"), {"keys": b"null"}, "the key is null, not a primitive"),
        (rule("_key", key="json"), {"keys": b"{}"}, "the key is an object, not a primitive"),
        (rule("_key.a", key="json"), {"keys": b"[1]"}, "the key is a list, not a primitive"),
        (rule("_key.a", key="json"), {"keys": b'{"a":[]}'}, "key field a is a list, not a primitive"),
        (rule("_header.hair"), {"headers": []}, "header 'hair' is not in the record"),
        (rule("_header.hair"), {"headers": None}, "header 'hair' is not in the record"),
        (rule("_header.hair"), {"headers": [header("Hair", b"x")]}, "header 'hair' is not in the record"),
        (rule("_header.hair"), {"headers": [header("hair", None)]}, "header 'hair' is null"),
        (rule("_header.hair"), {"headers": [header("hair", b"\xff")]}, "header 'hair' is no UTF-8"),
        (rule("_header.h.a"), {"headers": [header("h", b"x")]}, "header 'h' is no JSON"),
        (rule("a"), {"values": b'{"a":{}}'}, "field a is an object, not a primitive"),
        (rule("a.b"), {"values": b'{"a":{"b":[1]}}'}, "field a.b is a list, not a primitive"),
        (rule("a"), {"values": b'{"a":1e999}'}, "the value is no JSON: Number out of range"),
        (rule("_date.yyyy"), {"timestamps": -1}, "the record has no date"),
        (rule("_date.yyyy"), {"timestamps": 2**60}, "the record has no date"),
    ],
)
def test_a_record_without_a_place(keys: KeyRule, fields: dict[str, Any], why: str) -> None:
    assert why in refusal(keys, **fields)


def test_the_last_of_several_headers_counts() -> None:
    headers = [header("region", b"eu"), header("other", b"x"), header("region", b"us")]
    assert placed(rule("_header.region"), 1, headers=headers) == f"{ROOT}/myTopic/region=us"


def test_a_field_of_a_header() -> None:
    headers = [header("trace", b'{"tenant":"acme"}')]
    assert placed(rule("_header.trace.tenant"), 1, headers=headers) == f"{ROOT}/myTopic/trace.tenant=acme"
    assert placed(rule("_header.trace.user"), 1, headers=headers) == f"{ROOT}/myTopic/trace.user=[missing]"


def test_a_null_value_has_missing_fields() -> None:
    assert placed(rule("a"), 1, values=None) == f"{ROOT}/myTopic/a=[missing]"


def test_a_json_key_that_is_a_primitive_is_spelled_without_quotes() -> None:
    assert placed(rule("_key", key="json"), 1, keys=b'"eu"') == f"{ROOT}/myTopic/key=eu"
    assert placed(rule("_key.region", key="json"), 1, keys=b"8") == f"{ROOT}/myTopic/region=8"


def test_a_refused_record_leaves_the_others_in_place() -> None:
    directories = rule("_key").directories(1, Fields(keys=[b"a", None, b"b", b"..", b"a"]), 5)
    found = [one.rpartition("/")[2] if isinstance(one, str) else "refused" for one in directories]
    assert found == ["key=a", "refused", "key=b", "refused", "key=a"]


# Length


def test_a_key_may_have_1024_bytes_and_no_more() -> None:
    keys = rule("_key", prefix="", topic="t")
    shortest = next(length for length in range(1, 1025) if isinstance(placed(keys, 1, keys=b"x" * length), Unplaceable))
    longest = placed(keys, 1, keys=b"x" * (shortest - 1))
    assert isinstance(longest, str)
    marked = rule("_key", prefix="", topic="t", renamed="~1f2e3d4c5b6a")
    assert len(marked.key(longest, 2**31 - 1, 2**63 - 1)) == MAX_KEY_BYTES
    assert "its object key would exceed 1024 bytes" in refusal(keys, keys=b"x" * shortest)


def test_the_length_of_a_key_is_counted_in_bytes() -> None:
    assert "would exceed 1024 bytes" in refusal(rule("_key"), keys=("ü" * 500).encode())


def test_the_longest_default_key_fits() -> None:
    keys = rule(
        topic="t" * 249,
        prefix="p" * 480,
        suffix="s" * 64,
        renamed="~1f2e3d4c5b6a",
        include_keys=True,
        padding={"partition": 64, "offset": 64},
        format={"codec": "gzip"},
    )
    assert len(key(keys, 2**31 - 1, 2**63 - 1)) <= MAX_KEY_BYTES
    assert len(keys.dead_letters_key(2**31 - 1, 2**63 - 1)) <= MAX_KEY_BYTES


@given(st.text(max_size=300))
@example("a/../b")
@example("\ud800")
def test_every_value_gets_a_key_that_a_store_can_hold_or_a_reason(value: str) -> None:
    data = value.encode("utf-8", "surrogatepass")
    directory = placed(rule("_key"), 1, keys=data)
    if isinstance(directory, Unplaceable):
        assert str(directory)
        return
    made = rule("_key").key(directory, 1, 0)
    assert len(made.encode()) <= MAX_KEY_BYTES
    assert not set(made) & set(map(chr, range(32)))
    assert not {".", ".."} & set(made.split("/"))


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10**12), st.sampled_from(string.ascii_letters)), min_size=1)
)
def test_two_files_never_share_a_key(files: list[tuple[int, int, str]]) -> None:
    keys = rule("_key")
    made = {one: key(keys, one[0], one[1], keys=one[2].encode()) for one in files}
    assert len(set(made.values())) == len(made)


def test_a_rule_travels_to_the_workers() -> None:
    keys = rule("a", "_date.yyyy")
    assert pickle.loads(pickle.dumps(keys)) == keys
