"""Change events of Debezium, with and without a schema, and the transform that unwraps them."""

import datetime as dt
from decimal import Decimal
from typing import Any

from s3lake.config.model.transforms import Transform
from s3lake_tests.records.transform.kit import field, smt, struct

TYPE = "io.debezium.transforms.ExtractNewRecordState"
SOURCE = {"db": "d", "table": "t", "ts_ms": 5, "lsn": 9}
EVENT = {"before": None, "after": {"id": 1}, "source": SOURCE, "op": "c", "ts_ms": 7, "transaction": None}
DELETE = {**EVENT, "op": "d", "before": {"id": 1}, "after": None}


def unwrap(**options: str) -> Transform:
    """The transform; options have dots for underscores."""
    return smt(TYPE, {name.replace("_", "."): option for name, option in options.items()})


COLUMNS = (
    field("id", "int64"),
    field("price", "bytes", "Decimal", parameters={"scale": "2"}, optional=True),
    field("at", "int64", "Timestamp", optional=True),
    field("state", "string", default="new"),
)
ROW = {"id": 1, "price": "AMg=", "at": 5, "state": "x"}
OF_SOURCE = struct(field("db", "string"), field("table", "string"), field("ts_ms", "int64"), field("lsn", "int64"))
LANDED = {
    "id": 1,
    "price": Decimal("2.00"),
    "at": dt.datetime(1970, 1, 1, 0, 0, 0, 5000, dt.timezone.utc),
    "state": "x",
}
TYPES = {"id": "int64!", "price": "decimal(38,2)", "at": "timestamp", "state": "string!"}


def envelope(*columns: dict[str, Any], name: str = "srv.s.t.Envelope") -> dict[str, Any]:
    row = struct(*(columns or COLUMNS), name="srv.s.t.Value", optional=True)
    return struct(
        {**row, "field": "before"},
        {**row, "field": "after"},
        {**OF_SOURCE, "field": "source", "name": "io.debezium.connector.postgresql.Source"},
        field("op", "string"),
        field("ts_ms", "int64", optional=True),
        name=name,
    )


def change_event(op: str, before: Any, after: Any) -> dict[str, Any]:
    return {"before": before, "after": after, "source": EVENT["source"], "op": op, "ts_ms": 7}
