"""Integers that a double does not hold: exact in their column, or refused, at any depth and in any order."""

import json
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest

from s3lake.commit.documents import Recorded
from s3lake.convert import json_table
from s3lake.convert.limits import NO_LIMITS, Limits
from s3lake.land.task.outcomes import Done, Grown, unite_recorded
from s3lake.schema.types import from_document, to_document

ONE, TWO = 1795478431311000001, 1795478431311000002


def read(values: list[Any], columns: Any = None, given: Any = None, limits: Limits = NO_LIMITS) -> json_table.Table:
    texts = pa.array([json.dumps(value).encode() for value in values], pa.binary())
    return json_table.read_objects(texts, from_document(columns or {}), from_document(given or {}), limits)


def rows(found: json_table.Table) -> list[Any]:
    return [] if found.batch is None else found.batch.to_pylist()


@pytest.mark.parametrize("known", [{}, {"id": "int64"}])
@pytest.mark.parametrize("order", list(permutations([{"id": ONE}, {"id": TWO}, {"id": 0.5}])))
def test_large_integers_stay_exact_beside_a_fraction_in_any_order(known: Any, order: list[Any]) -> None:
    found = read(order, known)
    assert rows(found) == [value for value in order if value["id"] != 0.5]
    assert list(found.refused) == [order.index({"id": 0.5})]
    assert "field 'id' is double, and its column stays one of integers" in found.refused[order.index({"id": 0.5})]
    assert to_document(found.columns) == {"id": "int64"}
    assert found.large == {"id"}


@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda number: {"a": {"b": number}}, "a.b"),
        (lambda number: {"a": [number]}, "a[]"),
        (lambda number: {"a": [{"b": [number]}]}, "a[].b[]"),
    ],
)
def test_integers_are_exact_at_any_depth(wrap: Any, path: str) -> None:
    found = read([wrap(ONE), wrap(0.5), wrap(TWO)])
    assert rows(found) == [wrap(ONE), wrap(TWO)]
    assert f"field {path!r} is double" in found.refused[1]
    assert found.large == {path}
    doubles = read([wrap(0.5)]).columns
    refused = read([wrap(1), wrap(ONE)], to_document(doubles)).refused
    assert list(refused) == [1]
    assert f"field {path!r} is an integer that its column, double, does not hold exactly" in refused[1]


@pytest.mark.parametrize(
    ("type", "number"), [("double", 2**53 + 1), ("double", -(2**63) + 1), ("double", 2**64 + 1), ("float", 2**24 + 1)]
)
def test_an_integer_that_a_given_column_rounds_is_refused(type: str, number: int) -> None:
    said = f"is an integer that its column, {type}, does not hold exactly"
    for shape, value in ((type, number), ({"list": type}, [number]), ({"map": type}, {"k": number})):
        found = read([{"n": value}, {"m": 1}], {}, {"n": shape})
        assert list(found.refused) == [0]
        assert said in found.refused[0]


def test_an_integer_that_a_double_holds_is_one() -> None:
    numbers = [2**53, 2**60, 2**70, 1e300, -5]
    assert rows(read([{"n": number} for number in numbers], {"n": "double"})) == [{"n": float(n)} for n in numbers]


def test_an_integer_beyond_64_bits_is_a_double_or_refused_and_widens_nothing_then() -> None:
    assert to_document(read([{"n": 5}, {"n": 2**63}]).columns) == {"n": "double"}
    found = read([{"n": 5}, {"n": 2**63 + 1}])
    assert (rows(found), list(found.refused), to_document(found.columns)) == ([{"n": 5}], [1], {"n": "int64"})


# What is recorded


def grown(columns: Any, *large: str, offset: int = 0) -> Grown:
    return Grown(0, offset, columns, large=large)


def test_what_tasks_saw_is_one_of_integers_though_another_task_saw_a_fraction() -> None:
    for order in permutations([grown({"id": "double"}), grown({"id": "int64"}, "id", offset=9)]):
        found = unite_recorded(Recorded({}), order, 9)
        assert (found.columns, found.exact) == ({"id": "int64"}, ("id",))


def test_large_integers_of_a_commit_are_remembered() -> None:
    done = Done([], {}, {}, large=("a.b", "id"))
    found = unite_recorded(Recorded({"id": "double", "a": {"struct": {"b": "int64"}}}), [done], 9)
    assert found.exact == ("a.b",)
    assert unite_recorded(found, [done], 9) == found


def test_a_column_that_has_held_large_integers_does_not_widen_later() -> None:
    integral = dict.fromkeys(["id"], "it has held larger ones")
    found = read([{"id": 1}, {"id": 0.5}], {"id": "int64"}, limits=Limits(integral=integral))
    assert (rows(found), to_document(found.columns)) == ([{"id": 1}], {"id": "int64"})
    assert found.refused == {1: "field 'id' is double, and its column stays one of integers: it has held larger ones"}
