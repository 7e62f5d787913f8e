"""Counts of records: adding, outcomes, and documents that lack a count."""

from typing import Annotated

import msgspec

from s3lake.index.plan.counts import (
    CountDefinition,
    Counts,
    counts_to_json,
    define_counts,
    list_counts,
    list_counts_by_field,
    sum_counts,
)

ROUNDED = CountDefinition("rounded_records", "records with a rounded number", "rounded")


class MoreCounts(Counts, frozen=True, kw_only=True):
    rounded: Annotated[int, ROUNDED] = 0


decoder = msgspec.json.Decoder(MoreCounts)


def test_counts_by_field_add_up_field_by_field() -> None:
    one, more = Counts(fields_left_out={"a": 1, "b": 2}), Counts(fields_left_out={"b": 3, "c": 4})
    assert one.plus(more).fields_left_out == {"a": 1, "b": 5, "c": 4}
    assert one.fields_left_out == {"a": 1, "b": 2}


def test_many_parts_add_up_to_their_sum() -> None:
    parts = [
        Counts(read=1, landed=1),
        Counts(read=2, dead=2, fields_left_out={"a": 1}),
        Counts(fields_left_out={"a": 2}),
    ]
    assert sum_counts(parts) == Counts(read=3, landed=1, dead=2, fields_left_out={"a": 3})


def test_no_parts_add_up_to_nothing() -> None:
    assert sum_counts([]) == Counts()


def test_records_with_one_outcome_each_are_explained() -> None:
    explained = Counts(read=15, landed=5, dead=4, skipped=3, filtered=2, erased=1, late=9, fields_filled={"a": 7})
    assert explained.unexplained == 0


def test_records_without_an_outcome_and_with_two_are_unexplained() -> None:
    assert Counts(read=3, landed=1).unexplained == 2
    assert Counts(read=1, landed=1, erased=1).unexplained == -1


def test_a_new_count_is_added_listed_and_written_as_it_is_defined() -> None:
    both = MoreCounts(read=1, rounded=2).plus(MoreCounts(read=1, rounded=3))
    assert (both.read, both.rounded) == (2, 5)
    assert (ROUNDED, 5) in list_counts(both)
    assert counts_to_json(both)["rounded_records"] == 5


def test_a_count_that_an_older_document_lacks_is_0() -> None:
    older = msgspec.json.encode(Counts(read=4, landed=4))
    assert decoder.decode(older) == MoreCounts(read=4, landed=4, rounded=0)


def test_a_count_by_field_is_listed_as_its_sum_and_by_field() -> None:
    counts = Counts(fields_filled={"a": 1, "key:b": 2})
    definition = define_counts(Counts)["fields_filled"]
    assert (definition, 3) in list_counts(counts)
    assert (definition, {"a": 1, "key:b": 2}) in list_counts_by_field(counts)
