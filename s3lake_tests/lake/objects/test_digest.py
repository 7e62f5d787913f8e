"""A digest is that of the records, however the file is cut; another record gives another one."""

import datetime
import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s3lake.lake.objects.digest import Digest
from s3lake.lake.objects.shape import ObjectShape

PARQUET = ObjectShape("parquet")
ROWS: list[dict[str, Any]] = [
    {
        "id": number,
        "name": None if number % 5 == 0 else "n" * (number % 7),
        "flag": number % 3 == 0,
        "at": datetime.datetime(2026, 1, 1, 0, number % 60, tzinfo=datetime.timezone.utc),
        "money": Decimal(number) / 100,
        "deep": None if number % 4 == 0 else {"x": number, "tags": ["a"] * (number % 3)},
        "map": [("k", number)] * (number % 2),
        "nothing": None,
    }
    for number in range(100)
]
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("flag", pa.bool_()),
        ("at", pa.timestamp("ms", "UTC")),
        ("money", pa.decimal128(10, 2)),
        ("deep", pa.struct([("x", pa.int32()), ("tags", pa.list_(pa.string()))])),
        ("map", pa.map_(pa.string(), pa.int64())),
        ("nothing", pa.string()),
    ]
)


def parquet(rows: list[dict[str, Any]], group: int = 100) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, SCHEMA), out, row_group_size=group, store_schema=False)
    return out.getvalue()


def digest(*bodies: bytes, shape: ObjectShape = PARQUET) -> str:
    digest = Digest()
    for body in bodies:
        digest.add(shape, body, "key")
    return str(digest)


def test_files_one_after_the_other_are_one_file_of_all_their_records() -> None:
    assert digest(parquet(ROWS[:33], 7), parquet(ROWS[33:], 50)) == digest(parquet(ROWS))
    lines = ObjectShape("json")
    assert digest(b"1\n22\n", b"3\n", shape=lines) == digest(b"1\n22\n3\n", shape=lines)


@pytest.mark.parametrize("name", [field.name for field in SCHEMA])
def test_any_other_value_gives_another_digest(name: str) -> None:
    changed = [dict(row) for row in ROWS]
    changed[41][name] = {
        "id": 7, "name": "other", "flag": True, "at": ROWS[0]["at"], "money": Decimal(9), "nothing": "",
        "deep": {"x": 41, "tags": ["b", "a"]}, "map": [("l", 41)],
    }[name]  # fmt: skip
    assert digest(parquet(changed)) != digest(parquet(ROWS))


def test_an_order_a_missing_record_and_a_null_instead_of_an_empty_text_are_seen() -> None:
    swapped = [ROWS[1], ROWS[0], *ROWS[2:]]
    emptied = [{**row, "name": row["name"] or None} for row in ROWS]
    whole = digest(parquet(ROWS))
    assert whole not in {digest(parquet(rows)) for rows in (swapped, ROWS[1:], emptied)}
    assert digest(b"12\n3\n", shape=ObjectShape("json")) != digest(b"1\n23\n", shape=ObjectShape("json"))
