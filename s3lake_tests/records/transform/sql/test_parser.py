"""A sink's SQL, read without Spark: the select list, the filter, and what both name."""

import itertools
import re
from contextlib import suppress
from pathlib import Path

import pytest
from sqlglot import exp

from s3lake.records.transform.sql.parser import parse_sql
from s3lake.records.transform.sql.query import ComputedField, CopiedField, Star
from s3lake.records.transform.sql.spark_functions import FUNCTIONS
from s3lake.records.transform.sql.sql_words import NODES
from s3lake_tests.kit.cost import cpu_ratio


def test_a_query_is_its_items_its_filter_and_the_fields_that_it_names() -> None:
    found = parse_sql("a, b.c AS d, `x.y`.z, *, upper(_key) AS k", "b.e > 3 AND _headers['x'] = 'y'")
    assert found.items == (
        CopiedField("a", ("a",)),
        CopiedField("d", ("b", "c")),
        CopiedField("z", ("x.y", "z")),
        Star(),
        ComputedField("k", 0),
    )
    assert found.expressions == ("upper(_key) AS k",)
    assert found.where == "b.e > 3 AND _headers['x'] = 'y'"
    assert found.leaves == (("b", "e"),)
    assert found.fields == {"a", "b", "x.y"}
    assert found.meta == {"_key", "_headers"}


def test_a_star_without_a_filter_keeps_values_and_needs_no_spark() -> None:
    found = parse_sql("*", None)
    assert (found.items, found.where, found.leaves) == ((Star(),), None, ())
    assert found.keeps_values
    assert not found.needs_spark


def test_a_query_that_only_names_fields_needs_no_spark() -> None:
    assert not parse_sql("a, b.c AS d, * EXCEPT (e), o.*", None).needs_spark
    assert all(parse_sql(select, None).needs_spark for select in ("a + 1", "_key", "* REPLACE (1 AS a)", "a[0]"))
    assert parse_sql("*", "a").needs_spark


def test_a_field_is_read_once_if_it_is_read_whole() -> None:
    assert parse_sql("o.a + 1, size(o)", "p.q.r > p.q.s").leaves == (("o",), ("p", "q", "r"), ("p", "q", "s"))


def test_two_fields_that_differ_in_case_only_are_refused() -> None:
    message = "'o.Id' and 'o.id' differ in case only, and Spark takes them for one field: name one of them"
    with pytest.raises(ValueError, match=message):
        parse_sql("o.id + 1", "o.Id > 2")


@pytest.mark.parametrize(
    "words",
    ["to_char(a, '999')", "parse_json(a)", "named_struct('a b', a)", "a << 2", "'it''s'", "r'\\d'", "a is not null"],
)
def test_spark_gets_the_words_of_the_configuration(words: str) -> None:
    assert parse_sql(f"{words} AS x", f"{words} = 1").expressions == (f"{words} AS x",)
    assert parse_sql(f"{words} AS x", f"{words} = 1").where == f"{words} = 1"


def test_a_star_has_what_is_left_out_and_what_is_replaced() -> None:
    found = parse_sql(
        "* EXCEPT (secret, a.b, `x y`.`z.w`) REPLACE (upper(_key) AS `k k`, 1 AS c), o.* EXCEPT (p)", None
    )
    assert found.items == (
        Star((), (("secret",), ("a", "b"), ("x y", "z.w")), (ComputedField("k k", 0), ComputedField("c", 1))),
        Star(("o",), (("p",),)),
    )
    assert (found.expressions, found.leaves, found.meta) == (("upper(_key) AS `k k`", "1 AS c"), (), {"_key"})


@pytest.mark.parametrize(
    ("select", "where", "message"),
    [
        ("a b c", None, "select 'a b c' is not Spark SQL: Invalid expression / Unexpected token, near 'c'"),
        ("a,, b", None, "select 'a,, b': an entry of the select list is empty: take a comma out"),
        ("sum(a)", None, r"select 'sum\(a\)': sum is not a function that depends on the record alone"),
        ("row_number() OVER (ORDER BY a)", None, "row_number is not a function"),
        ("abs(a) OVER (ORDER BY a)", None, "OVER is not a function"),
        ("explode(a)", None, "explode is not a function"),
        ("a", "a IN (SELECT 1)", "is a subquery"),
        ("a", "b =", "where 'b =' is not Spark SQL: an operand or an argument is missing, near '='$"),
        ("a", "b BETWEEN 1", "is not Spark SQL: an operand or an argument is missing, near '1'$"),
        ("a", "NOT", "is not Spark SQL: an operand or an argument is missing, near 'NOT'$"),
        ("if(a)", None, r"is not Spark SQL: an operand or an argument is missing, near '\)'$"),
        ("concat(a", None, r"is not Spark SQL: Expecting \), at its end$"),
        ("a AS", None, "is not Spark SQL: Invalid expression / Unexpected token, at its end$"),
        ("a", "b = 1 LIMIT 3", "more than a select list and a condition"),
        ("a", "b = 1; DROP TABLE x", "more than a select list and a condition"),
        ("a FROM other", None, "is not Spark SQL"),
        ("a FROM other --", None, "select 'a FROM other --': '--' is a comment: take it out"),
        ("a /*+ BROADCAST(a) */", None, "is a comment"),
        ("a /* rest", None, "is not Spark SQL"),
        ("a", "true --", "is a comment"),
        ("DISTINCT a", None, "more than a select list and a condition"),
        ("transform(a) USING 'cat'", None, "is not supported"),
        ("struct(*)", None, r"\* is in an expression: name the fields"),
        ("struct(a.* EXCEPT (b))", None, "EXCEPT and REPLACE are in an expression"),
        ("* RENAME a AS b", None, r"RENAME of '?\* RENAME a AS b'? is not supported: EXCEPT and REPLACE are"),
        ("* EXCEPT ('a')", None, "EXCEPT takes names of fields"),
        ("* REPLACE (upper(a))", None, r"REPLACE takes \(expression AS field, …\)"),
        (":a", None, "is not supported"),
        ("{{a}}", None, "is not supported"),
    ],
)
def test_more_than_one_record_at_a_time_is_refused(select: str, where: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_sql(select, where)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("reflect('java.lang.System', 'getenv', 'HOME')", "reflect is not a function that depends on the record alone"),
        ("`try_reflect`('a', 'b')", "try_reflect is not a function"),
        ("upper(Java_Method ('a', 'b'))", "Java_Method is not a function"),
        ("builtin.reflect('a', 'b')", "called by a name with dots"),
        ("current_user()", "current_user is not a function"),
        ("current_timestamp", "current_timestamp is not a function"),
        ("unix_timestamp()", "is the time at which a record is read: take _timestamp"),
        ("uper(a)", "did you mean upper"),
    ],
)
def test_a_function_that_depends_on_more_than_the_record_is_refused_by_name(words: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_sql(f"{words} AS x", None)
    with pytest.raises(ValueError, match=message):
        parse_sql("*", f"{words} = 1")
    with pytest.raises(ValueError, match=message):
        parse_sql(f"* REPLACE ({words} AS x)", None)


def test_the_documents_name_every_function_that_is_allowed() -> None:
    text = (Path(__file__).parents[4] / "docs" / "transforms.md").read_text("utf-8")
    rows = text.partition("## SQL")[2].partition("\n## ")[0].partition("|---|---|")[2]
    assert set(re.findall(r"`(\w+)`", rows)) == FUNCTIONS


def test_each_allowed_node_is_a_class_of_the_parser() -> None:
    classes = {name: getattr(exp, name, None) for name in NODES}

    assert [name for name, node in classes.items() if node is None or not issubclass(node, exp.Expression)] == []


CALLS = ["()", "(a)", "(a, b)", "(a, b, c)", "(a, b, c, d)", "(a, b, c, d, e, f)"]
CALLS += ["(a AS int)", "(a, x -> x)", "(day FROM a)", "(day, a, b)"]
INFIX = {"between": "a between 1 and 2", "in": "a in (1, 2)", "div": "a div 2"}
INFIX |= {name: f"a {name} 'b'" for name in ("ilike", "like", "regexp", "rlike")}


def is_read(words: str) -> bool:
    try:
        return bool(parse_sql(f"{words} AS r", None).items)
    except ValueError:
        return False


def test_each_allowed_function_can_be_called() -> None:
    calls = {name: [INFIX.get(name, ""), *(f"{name}{call}" for call in CALLS)] for name in FUNCTIONS}
    assert [name for name, words in calls.items() if not any(map(is_read, words))] == []


def test_a_zone_is_given_to_a_function_and_not_by_words_that_spark_does_not_have() -> None:
    assert parse_sql("from_utc_timestamp(a, 'Asia/Tokyo') AS r", None).leaves == (("a",),)
    assert parse_sql("to_utc_timestamp(a, 'Asia/Tokyo') AS r", None).leaves == (("a",),)
    assert parse_sql("concat(a, ' at time zone ', `at time zone`) AS r", None).leaves == (("a",), ("at time zone",))
    with pytest.raises(ValueError, match="Spark has no AT TIME ZONE: write from_utc_timestamp"):
        parse_sql("a AT TIME ZONE 'UTC' AS r", None)


def test_a_map_of_an_odd_number_of_arguments_is_refused() -> None:
    with pytest.raises(ValueError, match="is not Spark SQL: a function lacks an argument"):
        parse_sql("map(a) AS r", None)


def test_fields_may_be_called_like_functions() -> None:
    assert parse_sql("user, `current_date`, o.current_user, uuid", None).items == (
        CopiedField("user", ("user",)),
        CopiedField("current_date", ("current_date",)),
        CopiedField("current_user", ("o", "current_user")),
        CopiedField("uuid", ("uuid",)),
    )


@pytest.mark.parametrize(
    ("opening", "closing", "depth"),
    [
        ("(", ")", 5_000),
        ("abs(", ")", 31),
        ("case when a then ", " end", 2_000),
        ("not ", "", 5_000),
        ("a + ", "", 100_000),
    ],
)
def test_a_query_that_nests_too_deeply_or_is_too_long_is_refused_for_the_cost_of_its_length(
    opening: str, closing: str, depth: int
) -> None:
    names = itertools.count()  # what has been parsed is remembered

    def parse_nested(depth: int) -> None:
        parse_sql(f"{opening * depth}a{next(names)}{closing * depth}", None)

    def refuse() -> None:
        with pytest.raises(ValueError, match=r"nests too deeply|is too long"):
            parse_nested(depth)

    def parse_a_quarter() -> None:
        with suppress(ValueError):
            parse_nested(depth // 4)

    assert cpu_ratio(refuse, parse_a_quarter, enough=8) <= 8  # the square would be 16
