"""A query's projection of one value, without Spark."""

import pytest

from s3lake.records.transform.sql.parser import parse_sql
from s3lake.records.transform.sql.query import project_value

VALUE = (
    b'{"id": 1e2, "Id": 10000000000000000000000, "_key": "own", "secret" : "s", "o": {"b c":1, "a" : [1, "x"]},'
    b' "xs":[{"a":1,"b":2.50},null,7]}'
)


def projected(select: str, value: bytes = VALUE, converter: str = "json", computed: tuple[str, ...] = ()) -> bytes:
    result = project_value(parse_sql(select, None), value, converter, computed)
    assert result is not None
    return result


def test_a_filter_alone_keeps_the_value() -> None:
    assert project_value(parse_sql("*", "id > 1"), b' {"a" : 1 } ', "json", ()) == b' {"a" : 1 } '


def test_fields_that_are_named_keep_their_bytes() -> None:
    assert projected("id, o.`b c` AS n, o") == b'{"id":1e2,"n":1,"o":{"b c":1, "a" : [1, "x"]}}'


def test_a_field_of_the_same_name_comes_before_one_in_another_case() -> None:
    assert projected("Id") == b'{"Id":10000000000000000000000}'
    assert projected("SECRET") == b'{"SECRET":"s"}'
    with pytest.raises(ValueError, match="'ID' fits the fields 'id', 'Id', which differ in case only"):
        projected("ID")


def test_a_field_that_is_missing_is_null() -> None:
    assert projected("missing, missing.too, o.x") == b'{"missing":null,"too":null,"x":null}'


def test_a_field_of_a_value_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(ValueError, match="'secret' is not an object, so it has no field 'x'"):
        projected("secret.x")


def test_a_star_leaves_fields_out_whatever_their_case() -> None:
    assert projected("* EXCEPT (ID, xs, O)") == b'{"_key":"own","secret":"s"}'
    assert projected("* EXCEPT (_key, id, xs, o)") == b'{"secret":"s"}'


def test_a_star_leaves_fields_out_of_objects_and_of_the_objects_of_lists() -> None:
    assert projected("* EXCEPT (o.A, xs.a, id, secret, _key)") == b'{"o":{"b c":1},"xs":[{"b":2.50},null,7]}'


def test_a_replacing_expression_is_in_the_place_of_its_field_or_at_the_end() -> None:
    computed = ('{"secret":"***"}', '{"new":1}')
    select = "* EXCEPT (id, o, xs) REPLACE (upper(secret) AS secret, 1 AS new)"
    assert projected(select, computed=computed) == b'{"_key":"own","secret":"***","new":1}'


def test_a_star_of_an_object_means_its_fields() -> None:
    assert projected("o.* EXCEPT (a), id") == b'{"b c":1,"id":1e2}'
    assert projected("missing.*") == b"{}"
    with pytest.raises(ValueError, match="'secret' is not an object, so it has no fields"):
        projected("secret.*")


def test_a_value_that_spark_computed_is_copied_under_its_name() -> None:
    computed = ('{"twice":2}', '{"col1":null}')
    assert projected("id * 2 AS twice, id + 1, id", computed=computed) == b'{"twice":2,"col2":null,"id":1e2}'


def test_a_value_that_is_not_an_object_is_the_field_value() -> None:
    assert projected("value", b" [1, 2] ") == b'{"value":[1, 2]}'
    assert projected("value AS v", b'a"b', "string") == b'{"v":"a\\"b"}'
    assert projected("*, value AS v", b"\x00\xff", "bytes") == b'{"value":"AP8=","v":"AP8="}'


def test_a_record_without_a_value_stays_without() -> None:
    assert project_value(parse_sql("id", None), None, "json", ()) is None
