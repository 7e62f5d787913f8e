"""A sink's SQL, read without Spark: the select list, the filter, and what both name."""

import pytest

from s3lake.transform.sql import parse


def test_a_query_is_its_items_its_filter_and_the_fields_that_it_names() -> None:
    found = parse("a, b.c AS d, `x.y`.z, *, upper(_key) AS k", "b.e > 3 AND _headers['x'] = 'y'")
    assert found.items == ("a", "b.c AS d", "`x.y`.z", "*", "UPPER(_key) AS k")
    assert found.where == "b.e > 3 AND _headers['x'] = 'y'"
    assert found.paths == {("a",), ("b", "c"), ("x.y", "z"), ("b", "e")}
    assert found.meta == {"_key", "_headers"}


def test_everything_and_no_filter() -> None:
    found = parse("*", None)
    assert (found.items, found.where, found.paths) == (("*",), None, frozenset())


@pytest.mark.parametrize(
    ("select", "where", "message"),
    [
        ("a b c", None, "select 'a b c' is no Spark SQL: Invalid expression / Unexpected token, near 'c'"),
        ("a,, b", None, "select 'a,, b': an entry of the select list is empty"),
        ("sum(a)", None, r"select 'sum\(a\)': SUM\(a\) is an aggregate: SQL works on one record at a time"),
        ("row_number() OVER (ORDER BY a)", None, "is a window"),
        ("explode(a)", None, "is a generator"),
        ("a", "a IN (SELECT 1)", "is a subquery"),
        ("a", "b =", "where 'b =' is no Spark SQL: .*, near '='"),
        ("a", "b = 1 LIMIT 3", "more than a select list and a condition"),
        ("a", "b = 1; DROP TABLE x", "more than a select list and a condition"),
        ("a FROM other", None, "is no Spark SQL"),
        ("DISTINCT a", None, "more than a select list and a condition"),
    ],
)
def test_more_than_one_record_at_a_time_is_refused(select: str, where: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(select, where)
