"""Records of several schemas in files of one: which of them fit into which, and what is filled and left out."""

import json
from typing import Any

import pyarrow as pa
import pytest

from s3lake.records.convert.conversion import Conversion
from s3lake.records.convert.convert_batch import convert_batch
from s3lake_tests.kit.avro_messages import avro_message, record
from s3lake_tests.records.convert.batches import batch
from s3lake_tests.records.schema.registry.server import serving

V1 = record(("id", "int"), ("to", record(("zip", "string"), name="a.To")))
V2: dict[str, Any] = {
    **record(("id", "long"), ("to", record(("zip", "string"), ("street", ["null", "string"]), name="a.To"))),
}
V2["fields"] += [{"name": "note", "type": "string", "default": "none"}, {"name": "tags", "type": ["null", "string"]}]
OLD = {"id": 1, "to": {"zip": "a"}}
NEW = {"id": 2, "to": {"zip": "b", "street": "s"}, "note": "n", "tags": None}

Files = list[list[dict[str, Any]]]


def files(compatibility: str, *batches: list[tuple[Any, Any]], format: str = "parquet") -> tuple[Files, dict[str, int]]:
    """The rows of each file, in the order in which they are opened; and fields that were left out."""
    rows: dict[pa.Schema, list[dict[str, Any]]] = {}
    lost: dict[str, int] = {}
    with serving() as registry:
        numbers: dict[str, Any] = {}
        conversion = Conversion(
            "string", "avro", format, "skip", registry=registry.connection, valued=False, compatibility=compatibility
        )
        projector = conversion.make_projector()
        for records in batches:
            messages = []
            for schema, value in records:
                first = numbers.setdefault(str(schema), avro_message(registry, schema, value))[:5]
                messages.append(first + avro_message(registry, schema, value)[5:])
            converted = convert_batch(conversion, batch(*messages), {}, projector)
            assert converted.refused == {}
            for name, count in converted.fields_left_out.items():
                lost[name] = lost.get(name, 0) + count
            for part in converted.parts:
                data = part.streams["data"]
                key = next((one for one in rows if one.equals(data.schema, check_metadata=True)), data.schema)
                rows.setdefault(key, []).extend(data.to_pylist())
    return list(rows.values()), lost


FILLED = {"id": 1, "to": {"zip": "a", "street": None}, "note": "none", "tags": None}
CUT = {"id": 2, "to": {"zip": "b"}}


def test_schemas_that_alternate_have_a_file_each() -> None:
    written, lost = files("none", [(V1, OLD), (V2, NEW)] * 3, [(V1, OLD), (V2, NEW)])
    assert ([len(rows) for rows in written], lost) == ([4, 4], {})


@pytest.mark.parametrize("format", ["parquet", "avro"])
@pytest.mark.parametrize("compatibility", ["backward", "full"])
def test_an_old_record_goes_into_the_file_of_a_schema_that_has_all_its_fields(compatibility: str, format: str) -> None:
    written, lost = files(compatibility, [(V1, OLD), (V2, NEW)] * 2, [(V1, OLD)], format=format)
    assert (written, lost) == ([[FILLED, NEW, FILLED, NEW, FILLED]], {})


def test_a_newer_schema_opens_a_file_of_its_own_once() -> None:
    written, lost = files("backward", [(V1, OLD)], [(V2, NEW), (V1, OLD)], [(V1, OLD)])
    assert (written, lost) == ([[OLD], [NEW, FILLED, FILLED]], {})


NARROW = record(("id", "long"), ("to", record(("zip", "string"), name="a.To")))


def test_a_new_record_goes_into_the_file_of_the_older_schema_and_what_that_lacks_is_counted() -> None:
    written, lost = files("forward", [(V2, NEW), (V2, NEW)], [(NARROW, OLD), (V2, NEW)], [(V2, NEW)])
    assert written == [[NEW, NEW], [OLD, CUT, CUT]]
    assert lost == {"note": 2, "to.street": 2}


OTHERS = [
    (record(("id", "string")), {"id": "x"}),
    (record(("id", "int"), ("must", "string")), {"id": 1, "must": "x"}),
    (record(("other", "int")), {"other": 1}),
    (record(("id", ["null", "int"])), {"id": None}),
]


@pytest.mark.parametrize("compatibility", ["backward", "forward"])
@pytest.mark.parametrize(("schema", "value"), OTHERS[:3], ids=["type", "required", "other"])
def test_records_of_a_schema_that_does_not_fit_get_their_own_file_and_lose_nothing(
    compatibility: str, schema: Any, value: dict[str, Any]
) -> None:
    base = record(("id", "int"), ("name", "string"))
    written, lost = files(compatibility, [(base, {"id": 1, "name": "a"}), (schema, value)] * 2)
    assert (sorted(map(len, written)), lost) == ([2, 2], {})
    assert [value, value] in written


def test_a_field_that_may_be_null_fits_into_none_that_may_not() -> None:
    plain, optional = record(("id", "int")), record(("id", ["null", "int"]))
    written, _ = files("backward", [(plain, {"id": 1}), (optional, {"id": None})])
    assert written == [[{"id": 1}, {"id": None}]]  # but the other way round


def test_a_long_is_no_double() -> None:
    whole, half = record(("n", "long")), record(("n", "double"))
    written, _ = files("backward", [(whole, {"n": 2**53 + 1}), (half, {"n": 0.5})])
    assert sorted(map(len, written)) == [1, 1]


@pytest.mark.parametrize(
    ("type", "default", "filled"),
    [
        ("long", 5, 5),
        ("bytes", "\u00ff", b"\xff"),
        ({"type": "array", "items": "int"}, [], []),
    ],
)
def test_a_missing_field_has_its_default(type: Any, default: Any, filled: Any) -> None:
    before, after = record(("id", "int")), record(("id", "int"))
    after["fields"].append({"name": "more", "type": type, "default": default})
    value = {"id": 2, "more": filled}
    written, _ = files("backward", [(after, value), (before, {"id": 1})])
    assert written == [[value, {"id": 1, "more": filled}]]


def test_records_inside_of_lists_and_maps_are_filled_and_cut() -> None:
    def holder(*fields: tuple[str, Any]) -> dict[str, Any]:
        item = record(*fields, name="a.Item")
        return record(
            ("items", {"type": "array", "items": item}), ("by", ["null", {"type": "map", "values": "a.Item"}])
        )

    old, new = holder(("n", "int")), holder(("n", "int"), ("m", ["null", "int"]))
    before = {"items": [{"n": 1}], "by": {"k": {"n": 2}}}
    after = {"items": [{"n": 1, "m": 5}, {"n": 2, "m": None}], "by": None}
    (rows,), _ = files("backward", [(old, before), (new, after)])
    assert rows == [{"items": [{"n": 1, "m": None}], "by": [("k", {"n": 2, "m": None})]}, after]
    written, lost = files("forward", [(old, before), (new, after)])
    assert (len(written), lost) == (1, {"items[].m": 1})
    assert written[0][1] == {"items": [{"n": 1}, {"n": 2}], "by": None}


def with_schema(payload: dict[str, Any], *fields: dict[str, Any]) -> bytes:
    return json.dumps({"schema": {"type": "struct", "fields": list(fields)}, "payload": payload}).encode()


@pytest.mark.parametrize(
    ("compatibility", "rows", "dropped", "filled"),
    [
        ("none", [[{"id": 1}], [{"id": 2, "note": "n"}, {"id": 3, "note": None}]], {}, {}),
        ("backward", [[{"id": 1, "note": "none"}, {"id": 2, "note": "n"}, {"id": 3, "note": None}]], {}, {"note": 1}),
        ("forward", [[{"id": 1}, {"id": 2}, {"id": 3}]], {"note": 1}, {}),
    ],
)
def test_values_with_their_own_schema_are_projected_as_the_compatibility_asks(
    compatibility: str, rows: Files, dropped: dict[str, int], filled: dict[str, int]
) -> None:
    number = {"type": "int64", "field": "id"}
    note = {"type": "string", "field": "note", "optional": True}
    note |= {"default": "none"} if compatibility == "backward" else {}
    conversion = Conversion("string", "connect_json", "parquet", "skip", compatibility=compatibility)
    values = (
        with_schema({"id": 1}, number),
        with_schema({"id": 2, "note": "n"}, number, note),
        with_schema({"id": 3, "note": None}, number, note),
    )
    converted = convert_batch(conversion, batch(*values), {}, conversion.make_projector())
    assert [part.streams["data"].to_pylist() for part in converted.parts] == rows
    assert (converted.refused, converted.fields_left_out, converted.fields_filled) == ({}, dropped, filled)
