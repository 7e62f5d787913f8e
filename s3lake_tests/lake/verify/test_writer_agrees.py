"""Two derivations of one format: whatever the pipeline stages of any values, verifying finds nothing that differs.

And the other way round: with any one record taken out of Kafka or put twice into it, it does.
"""

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s3lake_tests.conftest import EXAMPLES
from s3lake_tests.kit.connect_messages import connect_texts
from s3lake_tests.lake.verify.random_records import records
from s3lake_tests.lake.verify.sinks import sinks
from s3lake_tests.lake.verify.staged_records import Record, require_agreement
from s3lake_tests.lake.verify.world import VerifiedTopic


@settings(max_examples=100 * EXAMPLES)
@given(sink=sinks(), given=st.lists(records, min_size=1, max_size=8), touched=st.integers(0, 7))
def test_writer_and_verifier_agree_whatever_is_configured(
    sink: dict[str, Any], given: list[Record], touched: int
) -> None:
    require_agreement(VerifiedTopic(**sink), given, touched)


@pytest.mark.parametrize("second", [{"b": "2", "a": "1"}, {"a": "1", "c": "3"}, {"a": "1"}], ids=" ".join)
@pytest.mark.parametrize("touched", [0, 1])
def test_records_of_two_schemas_in_csv_without_header_lines_are_compared(second: dict[str, str], touched: int) -> None:
    world = VerifiedTopic(format={"type": "csv", "header": False}, converter={"value": "connect_json"})
    require_agreement(world, [(None, connect_texts(a="x", b="y"), []), (None, connect_texts(**second), [])], touched)


@pytest.mark.parametrize("value_type", ["boolean", "double"])
def test_a_record_whose_schema_has_another_type_than_a_declared_column_is_refused_in_csv(value_type: str) -> None:
    world = VerifiedTopic(
        format={"type": "csv"},
        converter={"value": "connect_json"},
        columns={"a": "int32"},
        nulls="write",
        errors={"tolerance": "all"},
    )
    schema = {"type": "struct", "fields": [{"type": value_type, "field": "a"}]}
    value = json.dumps({"schema": schema, "payload": {"a": False if value_type == "boolean" else 0.5}}).encode()
    require_agreement(world, [(None, None, []), (None, value, [])], 0)
    assert world.verify().checked[0].dead_letters == 1


_SCALARS = {"int64": 2**53 + 1, "double": 0.5, "boolean": True, "string": "1", "bytes": "AQ=="}


@pytest.mark.parametrize("shape", ["field", "value"])
@pytest.mark.parametrize(("first", "second"), list(permutations(_SCALARS, 2)))
def test_schemas_that_contradict_each_other_for_the_first_time_in_one_commit_share_no_csv(
    shape: str, first: str, second: str
) -> None:
    world = VerifiedTopic(format={"type": "csv"}, converter={"value": "connect_json"}, errors={"tolerance": "all"})
    values = []
    for scalar in (first, second):
        schema: dict[str, Any] = {"type": scalar}
        payload: Any = _SCALARS[scalar]
        if shape == "field":
            schema, payload = {"type": "struct", "fields": [{**schema, "field": "a"}]}, {"a": payload}
        values.append(json.dumps({"schema": schema, "payload": payload}).encode())
    require_agreement(world, [(None, value, []) for value in values], 0)
    assert world.verify().checked[0].dead_letters == 1


@pytest.mark.parametrize("form", ["avro", "parquet", "json"])
@pytest.mark.parametrize("converter", ["json", "connect_json"])
def test_blanks_around_a_key_are_in_a_sidecar_or_between_its_lines(form: str, converter: str) -> None:
    world = VerifiedTopic(
        format={"type": "avro"}, converter={"key": converter, "value": "bytes"}, sidecars={"keys": form}
    )
    require_agreement(world, [(key, b"x", []) for key in (b' {"a":1}', b'"b"\n', b"\t[1] ")], 0)
