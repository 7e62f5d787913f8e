"""The key vectors of reference/lenses.md 1.6, as `connector_names` gives them and as the document has them.

KCQL is translated by hand. Where compatibility.md overrides the real connector, the row's third column says so.
"""

from typing import Any

import pytest

from s3lake_tests.layout.files import Record, files, refusal, rule

P = "streamReactorBackups"
BOTH_12 = {"padding": {"partition": 12, "offset": 12}}
UNPADDED = {"padding": {"partition": 0, "offset": 0}}


def record(offset: int, value: bytes | None = b"{}", **other: Any) -> Record:
    return Record(offset, timestamp=other.pop("timestamp", offset), value=value, partition=1, **other)


SAM = record(0, b'{"name":"sam","title":"mr","salary":100.43}')
LAURA = record(1, b'{"name":"laura","title":"ms","salary":429.06}')
TOM = record(2, b'{"name":"tom","title":null,"salary":395.44}')
R = (SAM, LAURA, TOM)
CSV, JSON_KEY = {"format": {"type": "csv"}}, {"converter": {"key": "json"}}


def by(*elements: str, **layout: Any) -> dict[str, Any]:
    return {"partition_by": elements, **layout}


def people(*names: str) -> list[Record]:
    pairs = [name.split("/") for name in names]
    return [record(n, f'{{"name":"{a}","title":"{b}"}}'.encode()) for n, (a, b) in enumerate(pairs)]


SIX = people(
    "first/primary", "first/secondary", "first/primary", "second/secondary", "second/primary", "second/secondary"
)

Vector = tuple[str, dict[str, Any], dict[str, Any], list[Record], int, list[str], list[str]]
VECTORS: list[Vector] = [
    # id, layout, sink, records, records per file, observed keys, keys of the document (first offset, topic directory)
    ("1, by time", {}, {}, [*R], 9, ["myTopic/1/000000000002_0_2.json"], ["myTopic/1/000000000000.json"]),
    (
        "2, every record",
        {},
        {},
        [*R],
        1,
        [f"myTopic/1/00000000000{n}_{n}_{n}.json" for n in range(3)],
        [f"myTopic/1/00000000000{n}.json" for n in range(3)],
    ),
    (
        "4, Parquet",
        {},
        {"format": {"type": "parquet"}},
        [SAM, LAURA],
        1,
        [f"myTopic/1/00000000000{n}_{n}_{n}.parquet" for n in range(2)],
        [f"myTopic/1/00000000000{n}.parquet" for n in range(2)],
    ),
    (
        "5, Avro",
        {},
        {"format": {"type": "avro"}},
        [SAM],
        1,
        ["myTopic/1/000000000000_0_0.avro"],
        ["myTopic/1/000000000000.avro"],
    ),
    (
        "7, CSV",
        {},
        CSV,
        [record(n) for n in range(4)],
        2,
        ["myTopic/1/000000000001_0_1.csv", "myTopic/1/000000000003_2_3.csv"],
        ["myTopic/1/000000000000.csv", "myTopic/1/000000000002.csv"],
    ),
    (
        "8, bytes",
        {},
        {"format": {"type": "bytes"}},
        [record(0, timestamp=6)],
        1,
        ["myTopic/1/000000000000_6_6.bytes"],
        ["myTopic/1/000000000000.bytes"],
    ),
    (
        "10, a field that is null",
        by("name", "title", "salary"),
        {},
        [record(3, b'{"name":"first","title":null,"salary":200.0}')],
        1,
        ["name=first/title=[missing]/salary=200.0/myTopic(1_000000000003).json"],
        ["myTopic/name=first/title=[missing]/salary=200.0/myTopic(1_000000000003).json"],
    ),
    (
        # The real connector drags a directory's siblings along; here each file fills on its own.
        "11, each directory fills on its own",
        by("name", "title"),
        {},
        SIX,
        2,
        [
            "name=first/title=primary/myTopic(1_000000000002).json",
            "name=first/title=secondary/myTopic(1_000000000001).json",
            "name=second/title=primary/myTopic(1_000000000004).json",
            "name=second/title=secondary/myTopic(1_000000000005).json",
        ],
        [
            "myTopic/name=first/title=primary/myTopic(1_000000000000).json",
            "myTopic/name=first/title=secondary/myTopic(1_000000000001).json",
            "myTopic/name=second/title=primary/myTopic(1_000000000004).json",
            "myTopic/name=second/title=secondary/myTopic(1_000000000003).json",
        ],
    ),
    (
        "13, headers",
        by("_header.phonePrefix", "_header.region"),
        CSV,
        [record(0, headers=(("phonePrefix", b"+44"), ("region", b"8")))],
        1,
        ["phonePrefix=+44/region=8/myTopic(1_000000000000).csv"],
        ["myTopic/phonePrefix=+44/region=8/myTopic(1_000000000000).csv"],
    ),
    (
        "14, a header and a field",
        by("_header.headerPartitionKey", "_value.name"),
        CSV,
        [record(0, b'{"name":"first"}', headers=(("headerPartitionKey", b"0"),))],
        1,
        ["headerPartitionKey=0/name=first/myTopic(1_000000000000).csv"],
        ["myTopic/headerPartitionKey=0/name=first/myTopic(1_000000000000).csv"],
    ),
    (
        "16, the key",
        by("_key"),
        CSV,
        [record(0, key=b"0")],
        1,
        ["key=0/myTopic(1_000000000000).csv"],
        ["myTopic/key=0/myTopic(1_000000000000).csv"],
    ),
    (
        "17, the key without its name",
        by("_key", include_keys=False),
        CSV,
        [record(1, key=b"1")],
        1,
        ["1/myTopic(1_000000000001).csv"],
        ["myTopic/1/myTopic(1_000000000001).csv"],
    ),
    (
        "19, topic and partition",
        by("_topic", "_partition", include_keys=False, **BOTH_12),
        CSV,
        [record(0)],
        1,
        ["myTopic/000000000001/myTopic(000000000001_000000000000).csv"],
        ["myTopic/myTopic/000000000001/myTopic(000000000001_000000000000).csv"],
    ),
    (
        "20, in the order of the clause",
        by("_key.region", "_key.phonePrefix", **BOTH_12),
        {**CSV, **JSON_KEY},
        [record(0, key=b'{"phonePrefix":"+44","region":8}')],
        1,
        ["region=8/phonePrefix=+44/myTopic(000000000001_000000000000).csv"],
        ["myTopic/region=8/phonePrefix=+44/myTopic(000000000001_000000000000).csv"],
    ),
    (
        "23, padding",
        BOTH_12,
        {},
        [record(0), record(1)],
        2,
        ["myTopic/000000000001/000000000001_0_1.json"],
        ["myTopic/000000000001/000000000000.json"],
    ),
    (
        "25, a nested field",
        by("_value.user.name", **BOTH_12),
        {},
        [record(0, b'{"user":{"name":"laura"}}')],
        1,
        ["user.name=laura/myTopic(000000000001_000000000000).json"],
        ["myTopic/user.name=laura/myTopic(000000000001_000000000000).json"],
    ),
    (
        "26, a map and a name with dots",
        by("_key.favourites.band", "_key.`cost.centre.id`", **BOTH_12),
        JSON_KEY,
        [record(0, key=b'{"favourites":{"band":"the strokes"},"cost.centre.id":200}')],
        1,
        ["favourites.band=the strokes/cost.centre.id=200/myTopic(000000000001_000000000000).json"],
        ["myTopic/favourites.band=the strokes/cost.centre.id=200/myTopic(000000000001_000000000000).json"],
    ),
    (
        "26, not in the map",
        by("_key.favourites.band", **BOTH_12),
        JSON_KEY,
        [record(0, key=b'{"favourites":{}}')],
        1,
        ["favourites.band=[missing]/myTopic(000000000001_000000000000).json"],
        ["myTopic/favourites.band=[missing]/myTopic(000000000001_000000000000).json"],
    ),
    (
        "29, dates",
        by("_date.uuuu", "_date.LL", "_date.dd", include_keys=False, **BOTH_12),
        {},
        [record(0, timestamp=1_270_188_000_000)],
        1,
        ["2010/04/02/myTopic(000000000001_000000000000).json"],
        ["myTopic/2010/04/02/myTopic(000000000001_000000000000).json"],
    ),
    (
        # compatibility.md: text formats add the codec; a dialect that observes sets the extension.
        "32, gzip",
        {},
        {"format": {"codec": "gzip"}},
        [*R],
        3,
        ["myTopic/1/000000000002_0_2.json.gz"],
        ["myTopic/1/000000000000.json.gz"],
    ),
    (
        "32, gzip with the observed extension",
        {"extension": ".gz"},
        {"format": {"codec": "gzip"}},
        [*R],
        3,
        ["myTopic/1/000000000002_0_2.gz"],
        ["myTopic/1/000000000000.gz"],
    ),
    (
        "34, a suffix",
        {"suffix": "-my-suffix", **UNPADDED},
        {"format": {"type": "avro"}},
        [record(1, timestamp=101), record(2, timestamp=102)],
        2,
        ["myTopic/1/2_101_102-my-suffix.avro"],
        ["myTopic/1/1-my-suffix.avro"],
    ),
    (
        "37, names in the default layout",
        {"include_keys": True},
        {},
        [*R],
        3,
        ["topic=myTopic/partition=1/000000000002_0_2.json"],
        ["topic=myTopic/partition=1/000000000000.json"],
    ),
    (
        # compatibility.md: each length has its default on its own; the real connector stops padding the offset.
        "38, the partition's length alone",
        {"padding": {"partition": 12}},
        {},
        [*R],
        3,
        ["myTopic/000000000001/000000000002_0_2.json"],
        ["myTopic/000000000001/000000000000.json"],
    ),
    (
        # compatibility.md: _headers is _header; the real connector looks for a field of that name.
        "40, _headers",
        by("_headers.x", "fieldA"),
        {},
        [record(0, headers=(("x", b"1"),))],
        1,
        ["x=1/fieldA=[missing]/myTopic(1_000000000000).json"],
        ["myTopic/x=1/fieldA=[missing]/myTopic(1_000000000000).json"],
    ),
    (
        "41, files of two",
        UNPADDED,
        {"format": {"type": "avro"}},
        [record(n, timestamp=n - 1) for n in (1, 2)],
        2,
        ["myTopic/1/2_0_1.avro"],
        ["myTopic/1/1.avro"],
    ),
]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda one: one[0])
@pytest.mark.parametrize("observed", [True, False], ids=["observed", "documented"])
def test_a_layout_of_lenses(vector: Vector, observed: bool) -> None:
    _, layout, changes, records, count, as_observed, as_documented = vector
    keys = rule(topics=("myTopic",), prefix=P, layout={**layout, "connector_names": observed}, **changes)
    assert keys.deferred is observed
    assert files(keys, *records, count=count) == [f"{P}/{key}" for key in (as_observed if observed else as_documented)]


def test_22_without_a_prefix() -> None:
    layout = by("_key.region", "name", connector_names=True, **BOTH_12)
    keys = rule(topics=("myTopic",), layout=layout, **JSON_KEY)
    assert files(keys, record(0, b'{"name":"sam"}', key=b'{"region":8}')) == [
        "region=8/name=sam/myTopic(000000000001_000000000000).json"
    ]


@pytest.mark.parametrize("topic", ["myTopic", "myTopic2"])
def test_28_every_topic(topic: str) -> None:
    keys = rule(topics=(topic,), prefix=P, layout={**BOTH_12, "connector_names": True})
    assert files(keys, *R, count=3) == [f"{P}/{topic}/000000000001/000000000002_0_2.json"]


def test_31_nopartition_is_a_template() -> None:
    keys = rule(topics=("myTopic",), prefix=P, layout={"template": "{topic}({partition}_{offset:012})"})
    assert files(keys, SAM) == [f"{P}/myTopic(1_000000000000).json"]


def test_31_nopartition_with_another_padding() -> None:
    layout = {"template": "{topic}({partition:3}_{offset:12})", "padding": {"type": "right", "char": "_"}}
    assert files(rule(topics=("myTopic",), prefix=P, layout=layout), SAM) == [f"{P}/myTopic(1___0___________).json"]


def test_35_a_suffix_and_padding() -> None:
    layout = {"template": "my-topic/{partition:03}/{topic}({partition:03}_{offset:03})-my-suffix"}
    keys = rule(topics=("my-topic",), prefix="prefix", layout=layout)
    assert files(keys, Record(81, partition=9)) == ["prefix/my-topic/009/my-topic(009_081)-my-suffix.json"]


@pytest.mark.parametrize("format", ["avro", "parquet"])
def test_43_the_codec_of_avro_and_parquet_is_not_in_the_name(format: str) -> None:
    keys = rule(
        topics=("myTopic",), prefix=P, layout={"connector_names": True}, format={"type": format, "codec": "zstd"}
    )
    assert files(keys, Record(0)) == [f"{P}/myTopic/0/000000000000_0_0.{format}"]


def test_44_a_missing_header() -> None:
    keys = rule(topics=("myTopic",), prefix=P, layout=by("_header.hair"))
    assert refusal(keys, SAM) == "header 'hair' is not in the record"


def test_names_without_a_timestamp() -> None:
    keys = rule(topics=("myTopic",), layout={"connector_names": True})
    assert files(keys, record(0, timestamp=-1)) == ["myTopic/1/000000000000_-1_-1.json"]
