"""Columns: what JSON objects show, how two of them unite, and when they do not."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.records.schema.columns.arrow_types import from_arrow, to_arrow
from s3lake.records.schema.columns.types import (
    UNKNOWN,
    Columns,
    Decimal,
    List,
    Map,
    Primitive,
    Struct,
    Type,
    from_document,
    to_document,
)
from s3lake.records.schema.columns.union import (
    Conflict,
    drop_empty,
    find_illegal_name,
    merge_columns,
    unify_columns,
    unify_types,
)


def type_of(document: Any) -> Type:
    """A type as the index writes it."""
    return from_document({"": document})[""]


@pytest.mark.parametrize(
    ("one", "other", "united"),
    [
        ("int64", "int64", "int64"),
        ("int64", "double", "double"),
        ("double", "int64", "double"),
        ("int32", "int64", "int64"),
        ("int32", "double", "double"),
        ("double", "float", "double"),
        ("int32", "float", "double"),
        ("float", "int64", "double"),
        ({"map": "int32"}, {"map": "int64"}, {"map": "int64"}),
        (None, "string", "string"),
        ("string", None, "string"),
        ({"list": "int64"}, {"list": "double"}, {"list": "double"}),
        ({"list": None}, {"list": "bool"}, {"list": "bool"}),
        ({"struct": {}}, {"struct": {"a": "bool"}}, {"struct": {"a": "bool"}}),
        (
            {"struct": {"a": "int64", "b": "string"}},
            {"struct": {"c": "bool", "a": "double"}},
            {"struct": {"a": "double", "b": "string", "c": "bool"}},
        ),
    ],
)
def test_two_types_unite_to_one_that_holds_both(one: Any, other: Any, united: Any) -> None:
    assert unify_types(type_of(one), type_of(other), "a") == type_of(united)


@pytest.mark.parametrize("type", ["int64", {"list": "string"}, {"map": "date"}, {"struct": {"b": "bool"}}])
@pytest.mark.parametrize(
    "nothing",
    [{"struct": {}}, {"list": None}, {"list": {"struct": {}}}, {"struct": {"b": None, "c": {"list": None}}}],
    ids=str,
)
def test_a_list_or_an_object_that_holds_nothing_gives_way_to_any_type(nothing: Any, type: Any) -> None:
    one, other = unify_types(type_of(nothing), type_of(type)), unify_types(type_of(type), type_of(nothing))
    assert drop_empty({"a": one}) == drop_empty({"a": other}) == {"a": type_of(type)}


def test_lists_and_objects_that_hold_nothing_have_no_type_together() -> None:
    assert unify_types(type_of({"list": None}), type_of({"struct": {}})) == UNKNOWN


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ("int64", "string", "field 'a' is string, the sink's files have int64"),
        ("bool", "int64", "field 'a' is int64, the sink's files have bool"),
        ("timestamp", "int64", "field 'a' is int64, the sink's files have timestamp"),
        ("decimal(4,2)", "decimal(5,2)", "field 'a' is decimal(5,2), the sink's files have decimal(4,2)"),
        ({"map": "int64"}, {"list": "date"}, "field 'a' is list<date>, the sink's files have map<string, int64>"),
        ({"map": "date"}, {"map": "string"}, "field 'a{}' is string, the sink's files have date"),
        (
            {"struct": {"b": None, "c": "bool"}},
            {"list": "bool"},
            "field 'a' is list<bool>, the sink's files have struct<c: bool>",
        ),
        (
            {"list": "int64"},
            {"struct": {"b": "bool"}},
            "field 'a' is struct<b: bool>, the sink's files have list<int64>",
        ),
        ({"list": "int64"}, {"list": "string"}, "field 'a[]' is string, the sink's files have int64"),
        (
            {"struct": {"b": {"struct": {"c": "string"}}}},
            {"struct": {"b": {"struct": {"c": "double"}}}},
            "field 'a.b.c' is double, the sink's files have string",
        ),
    ],
)
def test_a_conflict_names_the_field_both_types_and_the_remedy(one: Any, other: Any, message: str) -> None:
    with pytest.raises(Conflict) as conflict:
        unify_types(type_of(one), type_of(other), "a")
    remedy = "have the producer keep to one type, or use format json, which has no columns"
    assert str(conflict.value) == f"{message}: {remedy}"


def test_the_first_task_decides_and_new_fields_are_kept_when_tasks_disagree() -> None:
    one = from_document({"a": "int64", "s": {"struct": {"x": "bool"}}})
    other = from_document({"a": "string", "b": "bool", "s": {"struct": {"x": "string", "y": "int64"}}})
    assert to_document(merge_columns(one, other)) == {
        "a": "int64",
        "s": {"struct": {"x": "bool", "y": "int64"}},
        "b": "bool",
    }


def test_a_null_field_is_not_a_column_and_a_timestamp_without_a_zone_is_a_string() -> None:
    assert from_arrow(pa.schema([("a", pa.null()), ("b", pa.list_(pa.null())), ("c", pa.struct([]))])) == {}
    assert from_arrow(pa.schema([("a", pa.timestamp("s")), ("b", pa.list_(pa.timestamp("ns")))])) == {
        "a": Primitive.STRING,
        "b": List(Primitive.STRING),
    }


def test_a_name_that_avro_forbids_is_found_however_deep() -> None:
    assert find_illegal_name(from_document({"a": "int64", "_b1": {"map": {"list": {"struct": {"c": "bool"}}}}})) is None
    assert find_illegal_name(from_document({"a": {"map": {"list": {"struct": {"c-d": "bool"}}}}})) == "a.c-d"


_types = st.recursive(
    st.sampled_from([*Primitive, Decimal(4, 2)]),
    lambda inner: (
        st.builds(List, inner)
        | st.builds(Map, inner)
        | st.builds(Struct, st.dictionaries(st.sampled_from("abc"), inner, min_size=1))
    ),
    max_leaves=6,
)
_columns = st.dictionaries(st.sampled_from("abcd"), _types, min_size=1)


@given(_columns)
def test_columns_survive_a_file(columns: Columns) -> None:
    assert from_arrow(to_arrow(columns)) == columns


@given(_columns, _columns)
def test_a_union_is_the_same_whichever_columns_come_first(one: Columns, other: Columns) -> None:
    try:
        united = unify_columns(one, other)
    except Conflict:
        with pytest.raises(Conflict):
            unify_columns(other, one)
        return
    assert to_document(unify_columns(other, one)) == to_document(united)  # but for the order of fields
    assert unify_columns(united, one) == united


@given(_columns, _columns)
def test_a_repeated_merge_of_columns_changes_nothing(one: Columns, other: Columns) -> None:
    once = merge_columns(one, other)
    assert merge_columns(once, other) == once
    assert merge_columns(once, one) == once
