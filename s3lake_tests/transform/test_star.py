"""`*` as the columns that it stands for."""

from s3lake.land.sql.star import columns_of
from s3lake.schema.types import Primitive, from_document
from s3lake.transform.sql import Star

FIELDS = from_document(
    {
        "id": "int64",
        "Secret": "string",
        "o": {"struct": {"a": "string", "b c": "int64", "deep": {"struct": {"x": "string"}}}},
        "xs": {"list": {"struct": {"a": "string", "b": "string"}}},
    }
)


def test_a_field_that_is_left_out_is_not_named() -> None:
    assert columns_of(Star(), {"id": Primitive.INT64, "a`b": Primitive.STRING}) == ["`id`", "`a``b`"]
    assert columns_of(Star(without=(("id",), ("o",), ("xs",))), FIELDS) == ["`Secret`"]


def test_case_does_not_matter_to_what_is_left_out() -> None:
    assert columns_of(Star(without=(("secret",), ("O",), ("xS",))), FIELDS) == ["`id`"]


def test_a_field_that_was_never_seen_is_left_out_before_it_is() -> None:
    assert columns_of(Star(without=(("later",), ("o2", "x"))), {"id": Primitive.INT64}) == ["`id`"]


def test_a_field_of_an_object_is_left_out_of_it() -> None:
    fields = {"o": FIELDS["o"]}
    assert columns_of(Star(without=(("o", "B C"), ("o", "deep", "x"))), fields) == [
        "if(`o` IS NULL, NULL, struct(`o`.`a` AS `a`, if(`o`.`deep` IS NULL, NULL, struct()) AS `deep`)) AS `o`"
    ]


def test_a_field_of_the_objects_of_a_list_is_left_out_of_each() -> None:
    assert columns_of(Star(without=(("xs", "a"),)), {"xs": FIELDS["xs"]}) == [
        "transform(`xs`, s3lake_0 -> if(s3lake_0 IS NULL, NULL, struct(s3lake_0.`b` AS `b`))) AS `xs`"
    ]


def test_what_replaces_a_field_stands_in_its_place_or_at_the_end() -> None:
    star = Star(replaced=(("SECRET", "'x' AS SECRET"), ("new", "1 AS new")))
    assert columns_of(star, {"Secret": "string", "id": "int64"}) == ["'x' AS SECRET", "`id`", "1 AS new"]


def test_a_star_of_an_object_stands_for_its_fields() -> None:
    assert columns_of(Star(("o",), (("deep",),)), FIELDS) == ["`o`.`a`", "`o`.`b c`"]
    assert columns_of(Star(("unseen",)), FIELDS) == []
    assert columns_of(Star(("id",)), FIELDS) == ["`id`.*"]
