"""Columns cast to wider ones: what Arrow makes of the same values, in any cut, with nulls at any depth."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3lake.lake.objects.spark_columns import IncompatibleTypeError, RoundedError, cast_column

LEAVES: list[tuple[pa.DataType, pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int32(), pa.int64(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int32(), pa.float64(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), pa.float64(), st.integers(-(2**53), 2**53)),
    (pa.float32(), pa.float64(), st.floats(width=32, allow_nan=False)),
    (pa.string(), pa.string(), st.text(max_size=3)),
    (pa.null(), pa.int64(), st.none()),
]
"""A type, a wider one, and values of the first."""


def within(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def struct(members: dict[str, Any], added: bool) -> Any:
        narrow = pa.struct([(name, of) for name, (of, _, _) in members.items()])
        more = [("added", pa.string())] if added else []
        wide = pa.struct([*((name, of) for name, (_, of, _) in reversed(members.items())), *more])
        cells = {name: st.none() | cell for name, (_, _, cell) in members.items()}
        return narrow, wide, st.fixed_dictionaries(cells)

    def lists(item: Any) -> Any:
        narrow, wide, cells = item
        return pa.list_(narrow), pa.list_(wide), st.lists(st.none() | cells, max_size=3)

    def maps(item: Any) -> Any:
        narrow, wide, cells = item
        entries = st.lists(st.tuples(st.text("ab", max_size=1), st.none() | cells), max_size=3)
        return pa.map_(pa.string(), narrow), pa.map_(pa.string(), wide), entries

    structs = st.builds(struct, st.dictionaries(st.sampled_from("xyz"), parts, min_size=1, max_size=3), st.booleans())
    return parts.map(lists) | parts.map(maps) | structs


TYPES = st.recursive(st.sampled_from(LEAVES), within, max_leaves=4)


def cast_some(of: Any, data: st.DataObject) -> None:
    narrow, wide, cells = of
    values = data.draw(st.lists(st.none() | cells, max_size=6))
    begin = data.draw(st.integers(0, len(values)))
    end = data.draw(st.integers(begin, len(values)))
    found = cast_column(pa.array(values, narrow)[begin:end], wide)
    found.validate(full=True)
    assert found.type == wide
    assert found.to_pylist() == pa.array(values[begin:end], wide).to_pylist()


@given(TYPES, st.data())
@settings(max_examples=50, deadline=None)
def test_a_column_is_what_arrow_makes_of_its_values(of: Any, data: st.DataObject) -> None:
    cast_some(of, data)


@pytest.mark.slow("more random columns")
def test_2000_columns_are_what_arrow_makes_of_their_values(capsys: pytest.CaptureFixture[str]) -> None:
    compared = 0

    @given(TYPES, st.data())
    @settings(max_examples=2_000, deadline=None)
    def run(of: Any, data: st.DataObject) -> None:
        nonlocal compared
        compared += 1
        cast_some(of, data)

    run()
    with capsys.disabled():
        print(f"\n{compared} columns compared with Arrow's own")
    assert compared >= 2_000


@pytest.mark.parametrize(
    ("narrow", "wide", "values"),
    [
        (pa.list_(pa.int32()), pa.list_(pa.int64()), [[1], None, [2, None], []]),
        (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), [[("a", 1)], None, [("b", None)], []]),
        (
            pa.list_(pa.map_(pa.string(), pa.float32())),
            pa.list_(pa.map_(pa.string(), pa.float64())),
            [[], None, [None]],
        ),
    ],
)
def test_a_cut_out_of_lists_with_nulls_is_cast(narrow: pa.DataType, wide: pa.DataType, values: list[Any]) -> None:
    assert cast_column(pa.array(values, narrow)[1:], wide).to_pylist() == values[1:]


def test_items_of_null_lists_and_of_other_rows_are_not_looked_at() -> None:
    items = pa.array([2**53 + 1, 7, 2**60 + 1], pa.int64())
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), items, mask=pa.array([True, False, False]))[:2]
    assert cast_column(lists, pa.list_(pa.float64())).to_pylist() == [None, [7.0]]


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**63 - 1])
def test_an_integer_that_a_double_does_not_hold_is_not_rounded(number: int) -> None:
    with pytest.raises(RoundedError):
        cast_column(pa.array([number, None]), pa.float64())


@pytest.mark.parametrize("number", [2**53 + 2, 2**60, -(2**63)])
def test_an_integer_that_a_double_holds_becomes_that_double(number: int) -> None:
    assert cast_column(pa.array([number, None]), pa.float64()).to_pylist() == [number, None]


def test_a_column_without_values_becomes_any_other_and_one_with_a_value_not() -> None:
    assert cast_column(pa.array([None, None], pa.float64()), pa.int64()).to_pylist() == [None, None]
    with pytest.raises(IncompatibleTypeError):
        cast_column(pa.array([None, 1.0]), pa.int64())
