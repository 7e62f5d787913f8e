"""Any table lands as an hour of a sink, in place of the rows that the hour had."""

import csv
import datetime
import decimal
import io
import json
import math
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import duckdb
import fastavro
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s3lake.config.model import Sink
from s3lake.config.model.key_space import KeySpace
from s3lake.errors import ConfigurationError, FencedError
from s3lake.hours import DAY_MS
from s3lake.index.commit.clean import clean_index
from s3lake.index.commit.documents import Manifest
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.store import Store
from s3lake.index.store.memory import MemoryStore
from s3lake.lake.readback.committed import list_committed_files, read_recorded_columns
from s3lake.lake.verify import verify_against
from s3lake.land.change.condition import Condition
from s3lake.land.change.erase import EraseConditions, erase_hour
from s3lake.land.hour.landing import land
from s3lake.land.hour.table_landing import land_table
from s3lake.land.topic.topic_sink import TopicSink
from s3lake_tests.kit import targets
from s3lake_tests.kit.crashes import Crash
from s3lake_tests.kit.stores import crash_everywhere
from s3lake_tests.land import at_hand
from s3lake_tests.land.change.parts import run_change

HOUR, NEXT = "2026-11-20T05", "2026-11-20T06"
NAME = "daily"


def target_of(store: Store | None = None, **sink: Any) -> TopicSink:
    """A sink without topics, and a table of it."""
    opened = store or MemoryStore("lake")
    settings = {"format": {"type": "parquet"}, **sink}
    model = Sink.model_validate({"name": "tables", "bucket": "lake", "start": HOUR, **settings})
    return targets.target_of(model, TopicIndex(opened, ".indexes/tables", NAME, model.root))


def numbers(*values: int) -> pa.Table:
    return pa.table({"n": list(values)})


def manifests(target: TopicSink, hour: str = HOUR) -> list[Manifest]:
    return target.manifests(hour) or []


def bodies(target: TopicSink, hour: str = HOUR) -> list[bytes]:
    """The objects that the hour lists, in order of their rows."""
    files = sorted((one.first_offset, one.key) for manifest in manifests(target, hour) for one in manifest.files)
    documents = [target.store.get(key) for _, key in files]
    assert all(documents)
    return [document.body for document in documents if document is not None]


def data_keys(target: TopicSink) -> list[str]:
    return sorted(key for key in target.store.list("") if not key.startswith(".indexes"))


def rows(target: TopicSink, hour: str = HOUR) -> list[dict[str, Any]]:
    """The rows of an hour of Parquet."""
    return [row for body in bodies(target, hour) for row in pq.read_table(io.BytesIO(body)).to_pylist()]


READ: dict[str, Callable[[bytes], list[Any]]] = {
    "parquet": lambda body: [row["n"] for row in pq.read_table(io.BytesIO(body)).to_pylist()],
    "avro": lambda body: [row["n"] for row in fastavro.reader(io.BytesIO(body))],  # type: ignore[index,call-overload]
    "csv": lambda body: [int(row["n"]) for row in csv.DictReader(io.StringIO(body.decode()))],
    "json": lambda body: [json.loads(line)["n"] for line in body.splitlines()],
    "json_array": lambda body: [row["n"] for row in json.loads(body)],
    "text": lambda body: [int(line) for line in body.splitlines()],
    "bytes": lambda body: [int(body)],
}


@pytest.mark.parametrize("form", READ)
def test_a_table_replaces_the_rows_of_its_hour_and_may_have_fewer(form: str) -> None:
    target = target_of(format={"type": form})
    type = pa.string() if form in ("text", "bytes") else pa.int64()
    for count in (3, 1, 5, 0):
        table = pa.table({"n": pa.array(list(map(str, range(count))) if type == pa.string() else range(count), type)})
        manifest = land_table(target, HOUR, table)
        assert [row for body in bodies(target) for row in READ[form](body)] == list(range(count))
        assert data_keys(target) == sorted(file.key for file in manifest.files)
        assert (manifest.reason, manifest.partitions[0].landed) == ("put", count)
    assert target.store.uploads == {}  # type: ignore[attr-defined]


TABLES: dict[str, Callable[[], object]] = {
    "a pyarrow Table": lambda: pa.table({"n": [1, 2], "s": ["a", None]}),
    "a RecordBatch": lambda: pa.record_batch({"n": [1, 2], "s": ["a", None]}),
    "a RecordBatchReader": lambda: pa.table({"n": [1, 2], "s": ["a", None]}).to_reader(),
    "pandas": lambda: pd.DataFrame({"n": [1, 2], "s": ["a", None]}),
    "polars": lambda: pl.DataFrame({"n": [1, 2], "s": ["a", None]}),
    "a relation of DuckDB": lambda: duckdb.sql("select * from (values (1::bigint, 'a'), (2, null)) as t(n, s)"),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_each_kind_of_table_lands_the_same_rows(table: Callable[[], object]) -> None:
    target = target_of()
    land_table(target, HOUR, table())
    assert rows(target) == [{"n": 1, "s": "a"}, {"n": 2, "s": None}]


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        (pa.array([7], pa.int8()), 7),
        (pa.array([7], pa.uint32()), 7),
        (pa.array(["a"], pa.large_string()), "a"),
        (pa.array(["a"]).dictionary_encode(), "a"),
        (pa.array([b"ab"], pa.binary(2)), b"ab"),
        (pa.array([1.5], pa.float16()), 1.5),
        (pa.array([0], pa.timestamp("ns")), datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)),
        (pa.array([0], pa.date64()), datetime.date(1970, 1, 1)),
        (pa.array([decimal.Decimal("1.50")], pa.decimal256(5, 2)), decimal.Decimal("1.50")),
        (pa.array([[1]], pa.large_list(pa.int16())), [1]),
        (pa.array([{"a": "x"}], pa.struct([("a", pa.large_string())])), {"a": "x"}),
        (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16], pa.binary(16))), uuid.UUID(bytes=b"0" * 16)),
    ],
    ids=lambda one: str(one.type) if isinstance(one, pa.Array) else "",
)
def test_columns_get_the_types_that_files_have(column: pa.Array, cell: object) -> None:
    target = target_of()
    land_table(target, HOUR, pa.table({"c": column}))
    assert rows(target) == [{"c": cell}]


def test_rows_of_json_are_one_line_each() -> None:
    target = target_of(format={"type": "json"})
    table = pa.table(
        {"d": [decimal.Decimal("1.50")], "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "s": ["a\nb"]}
    )
    land_table(target, HOUR, table)
    assert bodies(target) == [b'{"d":1.50,"m":{"k":1},"s":"a\\nb"}\n']


def test_columns_grow_and_older_hours_keep_theirs() -> None:
    target = target_of()
    land_table(target, HOUR, pa.table({"a": pa.array([1], pa.int32())}))
    land_table(target, NEXT, pa.table({"a": pa.array([2**40]), "b": ["x"]}))
    land_table(target, HOUR, pa.table({"b": ["y"]}))
    assert rows(target) == [{"a": None, "b": "y"}]
    assert rows(target, NEXT) == [{"a": 2**40, "b": "x"}]
    assert list(read_recorded_columns(target.index)) == ["a", "b"]


def test_a_row_lies_where_the_layout_places_it() -> None:
    target = target_of(layout={"partition_by": ["country"]})
    land_table(target, HOUR, pa.table({"country": ["de", "fr", "de"], "n": [1, 2, 3]}))
    assert [key.rpartition("/")[0] for key in data_keys(target)] == ["daily/country=de", "daily/country=fr"]


REFUSED: dict[str, tuple[dict[str, Any], object]] = {
    "'daily' is a topic of the sink": ({"topics": ["daily"]}, numbers(1)),
    "exactly_once is off": ({"exactly_once": False}, numbers(1)),
    "its transforms are for records of Kafka": (
        {"transforms": [{"type": "InsertField$Value", "options": {"static.field": "a", "static.value": "b"}}]},
        numbers(1),
    ),
    "its sql is for records of Kafka": ({"sql": {"select": "n"}}, numbers(1)),
    "its envelope is for records of Kafka": ({"envelope": {"style": "record"}}, numbers(1)),
    "its sidecars are for keys and headers": ({"sidecars": {"keys": "json"}}, numbers(1)),
    "its layout names the key of records": ({"layout": {"partition_by": ["_key"]}}, numbers(1)),
    "converter.value string makes one text of a row": ({"converter": {"value": "string"}}, numbers(1)),
    "a builtins.dict is not a table: return a Table": ({}, {"n": 1}),
    "is not a table (call .collect() first)": ({}, pl.DataFrame({"n": [1]}).lazy()),
    "two columns are called 'n': rename one": ({}, pa.table([[1], [2]], names=["n", "n"])),
    "column 'd' is duration[s], and files have no such type": ({}, pa.table({"d": pa.array([1], pa.duration("s"))})),
    "the table has no column with a type": ({}, pa.table({"n": [None]})),
    "which a row of CSV cannot hold": ({"format": {"type": "csv"}}, pa.table({"n": [[1]]})),
    "has a name that Avro forbids": ({"format": {"type": "avro"}}, pa.table({"a b": [1]})),
    "the table has the columns n, m": ({"format": {"type": "text"}}, pa.table({"n": ["1"], "m": ["2"]})),
    "max_columns allows 1": ({"max_columns": 1}, pa.table({"n": [1], "m": [2]})),
}  # fmt: skip


@pytest.mark.parametrize(("why", "sink", "value"), [(why, *rest) for why, rest in REFUSED.items()], ids=REFUSED)
def test_a_sink_or_a_value_that_cannot_be_landed_is_refused_before_anything_is_written(
    why: str, sink: dict[str, Any], value: object
) -> None:
    target = target_of(**sink)
    with pytest.raises(ConfigurationError) as caught:
        land_table(target, HOUR, value)
    assert why in str(caught.value)
    assert (list(target.store.list("")), target.store.uploads) == ([], {})  # type: ignore[attr-defined]


def test_a_column_of_another_type_is_refused_and_the_hour_stays() -> None:
    target = target_of()
    land_table(target, HOUR, numbers(1, 2))
    before = read_recorded_columns(target.index)
    with pytest.raises(ConfigurationError, match="column 'n' is string, and int64 in the hours that are landed"):
        land_table(target, HOUR, pa.table({"n": ["x"], "m": [1]}))
    assert rows(target) == [{"n": 1}, {"n": 2}]
    assert read_recorded_columns(target.index) == before


@pytest.mark.parametrize("type", [pa.float32(), pa.float64()])
@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda type: type, "n"),
        (lambda type: pa.struct([("b", type)]), "n.b"),
        (lambda type: pa.list_(type), "n[]"),
        (lambda type: pa.map_(pa.string(), type), "n[]"),
    ],
)
def test_a_column_of_integers_does_not_become_one_of_fractions(
    wrap: Callable[[pa.DataType], pa.DataType], path: str, type: pa.DataType
) -> None:
    target = target_of()
    land_table(target, HOUR, pa.table({"n": pa.nulls(1, wrap(pa.int64()))}))
    with pytest.raises(ConfigurationError, match=f"column '{re.escape(path)}' is .*, and int64 in the hours that are"):
        land_table(target, NEXT, pa.table({"n": pa.nulls(1, wrap(type))}))
    assert [manifest.hour for hour in (HOUR, NEXT) for manifest in manifests(target, hour)] == [HOUR]


def test_integers_that_a_column_of_fractions_holds_join_it_and_others_are_refused() -> None:
    target = target_of()
    land_table(target, HOUR, pa.table({"n": [0.5]}))
    land_table(target, NEXT, numbers(2**53, 2**60))
    assert rows(target, NEXT) == [{"n": 2.0**53}, {"n": 2.0**60}]
    with pytest.raises(ConfigurationError, match=r"column 'n' holds integers.*cannot hold all of them exactly"):
        land_table(target, NEXT, numbers(2**53 + 1))
    assert rows(target, NEXT) == [{"n": 2.0**53}, {"n": 2.0**60}]


@pytest.mark.parametrize(
    ("sink", "table", "why"),
    [
        ({}, pa.table({"t": pa.array([1], pa.timestamp("ns"))}), "column 't' is timestamp"),
        ({}, pa.table({"u": pa.array([2**64 - 1], pa.uint64())}), "column 'u' is uint64, and does not fit int64"),
        ({"format": {"type": "text"}}, pa.table({"s": ["a\nb"]}), "a cell has a line end"),
        ({"layout": {"partition_by": ["a"]}}, pa.table({"a": ["x" * 2000]}), "a record has no place"),
    ],
)
def test_a_value_that_files_cannot_hold_is_refused_and_the_hour_stays(
    sink: dict[str, Any], table: pa.Table, why: str
) -> None:
    target = target_of(**sink)
    with pytest.raises(ConfigurationError, match=why):
        land_table(target, HOUR, table)
    assert (data_keys(target), target.store.uploads) == ([], {})  # type: ignore[attr-defined]
    assert target.manifests(HOUR) is None


@pytest.mark.long
def test_wherever_a_process_crashes_the_hour_has_the_old_rows_or_the_new_and_the_next_one_finishes() -> None:
    old, new = [{"n": 1}, {"n": 2}], [{"n": 3}]
    target = target_of(flush={"count": 1})
    land_table(target, HOUR, numbers(1, 2))
    store, seen = target.store, set()
    assert isinstance(store, MemoryStore)

    def land(through: Store) -> None:
        land_table(target_of(through, flush={"count": 1}), HOUR, numbers(3))

    with mock.patch("s3lake.land.hour.table_landing.ensure_tried"):
        for place in crash_everywhere(store, land):
            seen.add(len(rows(target)))
            assert rows(target) in (old, new), place
            land_table(target, HOUR, numbers(3))
            assert (rows(target), len(data_keys(target))) == (new, 1), place
    assert seen == {1, 2}


def test_the_second_writer_of_an_hour_is_fenced_and_leaves_nothing_visible() -> None:
    target = target_of()
    land_table(target, HOUR, numbers(1))

    def slow() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [2]})
        land_table(target, HOUR, numbers(3))

    with pytest.raises(FencedError):
        land_table(target, HOUR, pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), slow()))
    assert rows(target) == [{"n": 3}]
    assert (len(data_keys(target)), target.store.uploads) == (1, {})  # type: ignore[attr-defined]


def test_hours_land_in_any_order_though_the_layout_names_no_hour() -> None:
    target = target_of(layout={"partition_by": ["n"]})
    for hour in (NEXT, HOUR, "2026-11-21T00"):
        land_table(target, hour, numbers(1))
    assert target.hours() == [HOUR, NEXT, "2026-11-21T00"]


def test_an_hour_whose_creator_crashed_is_finished_by_the_next_writer() -> None:
    target = target_of()
    with mock.patch.object(TopicIndex, "create", _only_heads), pytest.raises(Crash):
        land_table(target, HOUR, numbers(1))
    land_table(target, NEXT, numbers(2))
    land_table(target, HOUR, numbers(1))
    assert (rows(target), rows(target, NEXT)) == ([{"n": 1}], [{"n": 2}])


create_document = TopicIndex.create


def _only_heads(index: TopicIndex, key: str, document: Any) -> bool:
    if key != index.head_key:
        raise Crash
    return create_document(index, key, document)


def test_a_table_is_compacted_erased_cleaned_and_listed_as_what_kafka_gave() -> None:
    target = target_of(flush={"count": 2})
    land_table(target, HOUR, numbers(*range(6)))
    assert run_change("compact", target, HOUR).summary.endswith("become 1")
    person = EraseConditions(Condition("n = 3"))
    assert erase_hour(target, HOUR, person).records == 1
    assert [row["n"] for row in rows(target)] == [0, 1, 2, 4, 5]
    land_table(target, HOUR, numbers(7))
    listed = data_keys(target)
    later = int(datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc).timestamp() * 1000) + DAY_MS
    clean_index(target.index, now_ms=later, keys=KeySpace.from_sink(target.sink, NAME))
    assert data_keys(target) == listed
    (file,) = list_committed_files("lake", manifests(target), read_recorded_columns(target.index))
    assert (file.rows, file.hour, file.schema.names) == (1, HOUR, ["n"])


def test_verify_reports_that_kafka_has_nothing_to_compare_with() -> None:
    target = target_of()
    land_table(target, HOUR, numbers(1))
    with pytest.raises(ConfigurationError, match="holds tables that an asset handed in"):
        verify_against(target.sink, target.index, None, None)  # type: ignore[arg-type]


def test_a_topic_does_not_land_in_the_index_of_a_table_nor_a_table_in_that_of_a_topic() -> None:
    world = at_hand.TopicInMemory().produce(0, b"{}")
    land(world.target(), [at_hand.FIRST])
    other = targets.target_of(target_of().sink, world.target().index)
    with pytest.raises(ConfigurationError, match="holds records of Kafka's topic of this name"):
        land_table(other, HOUR, numbers(1))
    table = at_hand.TopicInMemory()
    land_table(targets.target_of(target_of().sink, table.target().index), at_hand.FIRST, numbers(1))
    table.produce(1, b"{}")
    with pytest.raises(ConfigurationError, match="holds tables of this name that an asset handed in"):
        land(table.target(), [at_hand.SECOND])


@pytest.mark.parametrize(
    ("was", "now"), [("parquet", "avro"), ("avro", "parquet"), ("json", "parquet"), ("parquet", "csv")]
)
def test_a_table_is_reformatted_and_expires_and_may_be_landed_again(was: str, now: str) -> None:
    before = target_of(format={"type": was}, flush={"count": 2})
    land_table(before, HOUR, numbers(1, 2, 3))
    after = target_of(before.store, format={"type": now}, flush={"count": 2})
    assert run_change("reformat", after, HOUR).blocker == ""
    assert [row for body in bodies(after) for row in READ[now](body)] == [1, 2, 3]
    run_change("retention", after, HOUR)
    assert (data_keys(after), manifests(after)[0].partitions[0].erased) == ([], 3)
    land_table(after, HOUR, numbers(4))
    assert [row for body in bodies(after) for row in READ[now](body)] == [4]


@pytest.mark.parametrize("column", ["list", "map", "struct"])
def test_batches_that_are_cut_out_land_in_recorded_columns_that_are_wider(column: str) -> None:
    kinds = {"list": pa.list_, "map": lambda of: pa.map_(pa.string(), of), "struct": lambda of: pa.struct([("a", of)])}
    cells: Any = {"list": [[1], None, [2, None]], "map": [[("k", 1)], None, [("k", 2)]], "struct": [{"a": 1}, None, {}]}
    target = target_of()
    land_table(target, HOUR, pa.table({"n": pa.array(cells[column], kinds[column](pa.int64()))}))
    narrow = pa.table({"n": pa.array(cells[column], kinds[column](pa.int32()))})
    land_table(target, NEXT, narrow.slice(1))
    wide = pa.array(cells[column], kinds[column](pa.int64())).to_pylist()
    assert [row["n"] for row in rows(target, NEXT)] == wide[1:]


@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda type: type, "s"),
        (lambda type: pa.struct([("t", type)]), "s.t"),
        (lambda type: pa.list_(type), "s"),
        (lambda type: pa.map_(pa.string(), type), "s"),
    ],
)
@pytest.mark.parametrize("format", ["parquet", "json"])
def test_a_struct_with_two_fields_of_one_name_is_refused(
    format: str, wrap: Callable[[pa.DataType], pa.DataType], path: str
) -> None:
    twice = pa.struct([pa.field("a", pa.int64()), pa.field("a", pa.string())])
    target = target_of(format={"type": format})
    with pytest.raises(ConfigurationError, match=f"column '{path}' has two fields that are called 'a': rename one"):
        land_table(target, HOUR, pa.table({"s": pa.nulls(1, wrap(twice))}))
    assert manifests(target) == []


def test_numbers_that_json_does_not_have_are_their_names() -> None:
    target = target_of(format={"type": "json"}, layout={"partition_by": ["n"]})
    odd = {"n": [math.nan, math.inf, -math.inf, 0.5, None], "l": [[math.nan, None]] * 5}
    table = pa.table(
        odd | {"s": [{"a": math.inf}] * 5, "m": pa.array([[("k", math.nan)]] * 5, pa.map_("string", "double"))}
    )
    land_table(target, HOUR, table)
    found = [json.loads(line) for body in bodies(target) for line in body.splitlines()]
    assert sorted((row["n"] for row in found), key=str) == ["-Infinity", 0.5, "Infinity", "NaN", None]
    assert [row["l"] for row in found] == [["NaN", None]] * 5
    assert [row["s"] for row in found] == [{"a": "Infinity"}] * 5
    assert [row["m"] for row in found] == [{"k": "NaN"}] * 5
    places = sorted(key.rsplit("/", 2)[-2] for key in target.store.list("") if "n=" in key)  # type: ignore[attr-defined]
    assert places == ["n=-Infinity", "n=0.5", "n=Infinity", "n=NaN", "n=[missing]"]


def test_an_index_is_one_assets() -> None:
    target = target_of()
    land_table(target, HOUR, numbers(1), ("daily", "orders"))
    for hour in (HOUR, NEXT):
        with pytest.raises(ConfigurationError, match=r"of asset \['daily', 'orders'\], and asset \['daily.orders'\]"):
            land_table(target, hour, numbers(2), ("daily.orders",))
    land_table(target, NEXT, numbers(3), ("daily", "orders"))
    assert (rows(target), rows(target, NEXT)) == ([{"n": 1}], [{"n": 3}])
    head = target.index.head()
    assert head is not None
    assert head[0].owner == ("daily", "orders")


def test_an_index_without_an_owner_gets_the_first_one() -> None:
    target = target_of()
    land_table(target, HOUR, numbers(1))
    land_table(target, HOUR, numbers(2), ("daily",))
    with pytest.raises(ConfigurationError, match=r"holds the tables of asset \['daily'\]"):
        land_table(target, HOUR, numbers(3), ("other",))
    assert rows(target) == [{"n": 2}]


def test_a_map_with_a_key_twice_is_no_object_of_json() -> None:
    table = pa.table({"m": pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64()))})
    with pytest.raises(ConfigurationError, match="a map has a key twice, which an object of JSON cannot"):
        land_table(target_of(format={"type": "json"}), HOUR, table)
