"""Tables with every type that a column can have, and random rows of them."""

import datetime
import decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

UTC = datetime.timezone.utc

FLAT = pa.schema(
    [
        ("yes", pa.bool_()),
        ("small", pa.int32()),
        ("large", pa.int64()),
        ("single", pa.float32()),
        ("double", pa.float64()),
        ("text", pa.string()),
        ("data", pa.binary()),
        ("day", pa.date32()),
        ("time", pa.time32("ms")),
        ("at", pa.timestamp("ms", "UTC")),
        ("id", pa.uuid()),
        ("price", pa.decimal128(20, 8)),
        ("units", pa.decimal128(38, 0)),
    ]
)
_ITEM = pa.struct([("sku", pa.string()), ("amount", pa.decimal128(9, 2)), ("at", pa.timestamp("ms", "UTC"))])
NESTED = pa.schema(
    [
        ("tags", pa.list_(pa.string())),
        ("grid", pa.list_(pa.list_(pa.int64()))),
        ("item", _ITEM),
        ("items", pa.list_(_ITEM)),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("by_sku", pa.map_(pa.string(), _ITEM)),
        ("deep", pa.struct([("inner", pa.struct([("ids", pa.list_(pa.int64()))]))])),
    ]
)
EVERYTHING = pa.schema([*FLAT, *NESTED])


def _decimals(precision: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    units = st.integers(1 - 10**precision, 10**precision - 1)
    return units.map(lambda number: decimal.Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale)))


_TEXT = st.text(st.sampled_from('aé",\n\r ;\\😀\x00'), max_size=4)
_MOMENTS = st.integers(-62_135_596_800_000, 253_402_300_799_999).map(
    lambda ms: datetime.datetime(1970, 1, 1, tzinfo=UTC) + datetime.timedelta(milliseconds=ms)
)
_TIMES = st.integers(0, 86_399_999).map(
    lambda ms: (datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)).time()
)
_VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70),
    pa.float32(): st.floats(width=32, allow_nan=False, allow_infinity=False),
    pa.float64(): st.floats(allow_nan=False, allow_infinity=False),
    pa.string(): _TEXT,
    pa.binary(): st.binary(max_size=7),
    pa.date32(): st.dates(),
    pa.time32("ms"): _TIMES,
    pa.timestamp("ms", "UTC"): _MOMENTS,
    pa.uuid(): st.uuids(),
}


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """A value of the type, often null."""
    if pa.types.is_decimal(kind):
        found = _decimals(kind.precision, kind.scale)
    elif pa.types.is_struct(kind):
        found = st.fixed_dictionaries({field.name: values(field.type) for field in kind})
    elif pa.types.is_map(kind):
        found = st.dictionaries(_TEXT, values(kind.item_type), max_size=2).map(lambda pairs: list(pairs.items()))
    elif pa.types.is_list(kind):
        found = st.lists(values(kind.value_type), max_size=3)
    else:
        found = _VALUES[kind]
    return st.none() | found


def batches(of: pa.Schema) -> st.SearchStrategy[list[pa.RecordBatch]]:
    """Batches of some columns of the schema; some batches are slices of a longer one."""

    def of_some(fields: list[pa.Field]) -> st.SearchStrategy[list[pa.RecordBatch]]:
        schema = pa.schema(fields)
        row = st.fixed_dictionaries({field.name: values(field.type) for field in fields})

        def sliced(found: tuple[list[dict[str, Any]], int]) -> pa.RecordBatch:
            rows, start = found
            return pa.RecordBatch.from_pylist(rows, schema).slice(min(start, len(rows) - 1))

        return st.lists(
            st.tuples(st.lists(row, min_size=1, max_size=3), st.integers(0, 2)).map(sliced), min_size=1, max_size=3
        )

    return st.lists(st.sampled_from(list(of)), min_size=1, max_size=3, unique_by=lambda field: field.name).flatmap(
        of_some
    )


def plain(value: Any, kind: pa.DataType) -> Any:
    """A value as pyarrow gives it, with maps as dictionaries: the readers' spelling."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: plain(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {key: plain(one, kind.item_type) for key, one in value}
    if pa.types.is_list(kind):
        return [plain(one, kind.value_type) for one in value]
    return value


def plain_rows(written: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    """The rows of the batches, with maps as dictionaries."""
    return [
        {field.name: plain(row[field.name], field.type) for field in batch.schema}
        for batch in written
        for row in batch.to_pylist()
    ]
