"""A topic of Debezium on real parts: Avro of a registry becomes rows of Parquet files and of an Iceberg table."""

import datetime as dt
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from s3lake.land.hour.landing import land
from s3lake_tests.kit.lake import START, Lake, at
from s3lake_tests.records.schema.registry.server import datum, framed, serving

ROW: dict[str, Any] = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
        {"name": "photo", "type": ["null", "bytes"], "default": None},
    ],
}
SOURCE = {
    "type": "record",
    "name": "Source",
    "fields": [{"name": "lsn", "type": "long"}, {"name": "table", "type": "string"}],
}
ENVELOPE: dict[str, Any] = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.public.orders",
    "connect.name": "shop.public.orders.Envelope",
    "fields": [
        {"name": "before", "type": ["null", ROW], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": SOURCE},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}
ROWS = [
    {"id": number, "price": (100 * number).to_bytes(4, "big"), "day": 20_000, "at": 1_700_000_000_123, "photo": b"\0"}
    for number in range(3)
]
CHEAP = {**ROWS[1], "price": b"\1", "day": None, "at": None, "photo": None}
EVENTS: list[tuple[str, Any, Any]] = [
    ("r", None, ROWS[0]),
    ("c", None, ROWS[1]),
    ("u", ROWS[1], CHEAP),
    ("c", None, ROWS[2]),
    ("d", ROWS[2], None),
    ("t", None, None),
]
DAY, AT = dt.date(2024, 10, 4), dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, dt.timezone.utc)


def landed(number: int, price: str, deleted: str, op: str, lsn: int, *, full: bool = True) -> dict[str, Any]:
    row = {"id": number, "price": Decimal(price), "day": DAY, "at": AT, "photo": b"\0"}
    empty = {} if full else dict.fromkeys(("day", "at", "photo"))
    return {**row, **empty, "__deleted": deleted, "__op": op, "__source_lsn": lsn}


EXPECTED = [
    landed(0, "0.00", "false", "r", 0),
    landed(1, "1.00", "false", "c", 1),
    landed(1, "0.01", "false", "u", 2, full=False),
    landed(2, "2.00", "false", "c", 3),
    landed(2, "2.00", "true", "d", 4),
]


def test_a_topic_of_debezium_lands_as_rows_of_its_table(lake: Lake, tmp_path: Path) -> None:
    with serving() as registry:
        number = registry.add(ENVELOPE)
        events = [
            {"before": before, "after": after, "source": {"lsn": lsn, "table": "orders"}, "op": op, "ts_ms": 7}
            for lsn, (op, before, after) in enumerate(EVENTS)
        ]
        values: list[bytes | None] = [framed(number, datum(ENVELOPE, event)) for event in events]
        values.insert(5, None)  # the tombstone behind the delete
        topic = lake.topic()
        lake.produce(topic, values, at(START, 5))
        catalog = f"{{type: sql, uri: 'sqlite:///{tmp_path}/catalog.db'}}"
        options = "{delete.tombstone.handling.mode: rewrite, add.fields: 'op,source.lsn'}"
        unwrap = f"{{type: io.debezium.transforms.ExtractNewRecordState, options: {options}}}"
        settings = (
            f"converter: {{value: avro, registry: {{url: '{registry.url}'}}}}, transforms: [{unwrap}], "
            f"format: {{type: parquet}}, table: {{name: 'lake.{{topic}}', catalog: {catalog}}}"
        )
        target = lake.target(topic, settings, at(START, 200))
        land(target, [START])
        report = lake.verify(target)
    assert (report.differences, report.landed, report.dead_letters) == ((), 5, 0)
    (key,) = [key for key in lake.objects() if key.endswith(".parquet")]
    file = pq.read_table(io.BytesIO(lake.body(key)))
    assert file.to_pylist() == EXPECTED
    assert {field.name: (str(field.type), field.nullable) for field in file.schema} == {
        "id": ("int64", False),
        "price": ("decimal128(10, 2)", False),
        "day": ("date32[day]", True),
        "at": ("timestamp[ms, tz=UTC]", True),
        "photo": ("binary", True),
        "__deleted": ("string", True),
        "__op": ("string", True),
        "__source_lsn": ("int64", True),
    }
    assert target.table is not None
    table = target.table.load()
    assert table is not None
    rows = table.scan().to_arrow().drop_columns(["landed_hour"]).sort_by("__source_lsn")
    assert rows.to_pylist() == EXPECTED
    assert pa.types.is_decimal(rows.schema.field("price").type)
