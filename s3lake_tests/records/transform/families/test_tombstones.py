"""Null values that transforms make, drop or refuse: of Confluent and Aiven."""

from typing import Any

import pytest

from s3lake.records.transform.chain.apply import Transformed
from s3lake_tests.records.transform.kit import (
    Message,
    after,
    chain,
    field,
    refusal,
    run,
    run_described,
    smt,
    struct,
    texts_of,
)

CONFLUENT = "io.confluent.connect.transforms."
AIVEN = "io.aiven.kafka.connect.transforms."


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (f"{CONFLUENT}TombstoneHandler", {}),
        (f"{CONFLUENT}TombstoneHandler", {"behavior": "ignore"}),
        (f"{AIVEN}TombstoneHandler", {"behavior": "DROP_SILENT"}),
        (f"{AIVEN}TombstoneHandler", {"behavior": "drop_warn"}),
    ],
)
def test_a_handler_drops_records_without_a_value(kind: str, options: dict[str, str]) -> None:
    done = run(chain(smt(kind, options)), Message(None), Message({"a": 1}))
    assert (done.rows.to_pylist(), done.filtered) == ([1], 1)
    described = run_described({**struct(field("a", "int32")), "optional": True}, [None, {"a": 1}], smt(kind, options))
    assert (described.rows.to_pylist(), described.filtered) == ([1], 1)


@pytest.mark.parametrize("package", [CONFLUENT, AIVEN])
def test_a_handler_refuses_them_if_it_is_set_to(package: str) -> None:
    assert "the record has no value" in refusal(Message(None), smt(f"{package}TombstoneHandler", {"behavior": "fail"}))


@pytest.mark.parametrize("kind", [f"{AIVEN}MakeTombstone", f"{CONFLUENT}Drop$Value", "Drop$Value"])
def test_a_value_is_removed(kind: str) -> None:
    done = after(Message({"a": 1}, b"k"), smt(kind))
    assert (done.value, done.key) == (None, b"k")
    assert texts_of(run_described(struct(field("a", "int32")), [{"a": 1}], smt(kind)), "value") == [None]


def test_a_key_is_removed() -> None:
    done = after(Message({"a": 1}, b"k"), smt("Drop$Key"))
    assert (done.value, done.key) == ({"a": 1}, None)


def drop(behavior: str, **schema: Any) -> Transformed:
    step = smt("Drop$Value", {"schema.behavior": behavior})
    return run_described({**struct(field("a", "int32"), name="R"), **schema}, [{"a": 1}], step)


@pytest.mark.parametrize(
    ("behavior", "optional", "required_after"),
    [("nullify", False, None), ("retain", False, True), ("force_optional", False, False), ("validate", True, False)],
)
def test_the_schema_of_a_dropped_value_goes_or_stays(
    behavior: str, optional: bool, required_after: bool | None
) -> None:
    done = drop(behavior, optional=optional)
    schemas = done.columns["value"].schemas
    assert texts_of(done, "value") == [None]
    if required_after is None:
        assert schemas is None
    else:
        assert schemas is not None
        (schema,) = schemas.distinct
        assert schema.detail is not None
        assert (schema.name, schema.detail.required) == ("R", required_after)


def test_a_schema_that_allows_no_null_is_refused_where_it_is_validated() -> None:
    assert "by the schema the value is never null" in drop("validate").refused[0]
