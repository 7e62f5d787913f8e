"""`s3lake ddl`: which topics are a table of directories."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, NoRegionError

from s3lake.cli.ddl import build_hive_table, find_engine_differences
from s3lake.cli.request import Request
from s3lake.errors import ConfigurationError
from s3lake_tests.kit.connect_messages import connect_texts
from s3lake_tests.kit.console import Run
from s3lake_tests.lake.verify.world import TOPIC
from s3lake_tests.land.change.parts import Parts


def landed(*values: bytes, **sink: Any) -> Parts:
    """An hour of a sink."""
    return Parts(**sink).land(*values)


def test_files_of_other_columns_cannot_be_a_table_because_engines_use_positions() -> None:
    world = landed(
        *(connect_texts(**one) for one in ({"a": "1", "b": "2"}, {"b": "3", "a": "4"})),
        format={"type": "csv", "header": False},
        converter={"value": "connect_json"},
    )
    with pytest.raises(ConfigurationError, match=r"has the columns b, a, of a, b in all: without a header line"):
        build_hive_table(world.sink, world.index, "athena")


def test_files_that_lack_the_last_columns_are_a_table() -> None:
    world = landed(
        *(connect_texts(**one) for one in ({"a": "1"}, {"a": "2", "b": "3"})),
        format={"type": "csv", "header": False},
        converter={"value": "connect_json"},
    )
    assert list(build_hive_table(world.sink, world.index, "athena").columns) == ["a", "b"]


def test_keys_next_to_the_data_cannot_be_a_table() -> None:
    world = Parts(sidecars={"keys": "json"}).land_records([(b"k", b"{}", [])])
    with pytest.raises(ConfigurationError, match=r"keys.json is among the data, and engines read every object"):
        build_hive_table(world.sink, world.index, "athena")


@pytest.mark.parametrize("type", ["csv", "parquet"])
def test_texts_are_a_table_of_one_column(type: str) -> None:
    world = landed(b"x", format={"type": type}, converter={"value": "string"})
    assert list(build_hive_table(world.sink, world.index, "athena").columns) == ["value"]


@pytest.mark.parametrize(
    ("format", "why"),
    [
        ({"type": "bytes"}, "engines read lines, and format bytes of this sink has none"),
        ({"type": "text", "framing": {"between": "|"}}, "engines read lines, and format text of this sink has none"),
    ],
)
def test_a_format_without_lines_cannot_be_a_table(format: dict[str, Any], why: str) -> None:
    world = landed(b"x", format=format, converter={"value": "bytes"})
    with pytest.raises(ConfigurationError, match=why):
        build_hive_table(world.sink, world.index, "athena")


def test_rows_of_an_envelope_in_csv_are_columns_that_nothing_quotes() -> None:
    world = landed(b"{}", format={"type": "csv"}, envelope={"style": "flat", "fields": ["key", "value", "offset"]})
    made = build_hive_table(world.sink, world.index, "athena")
    assert (made.form, list(made.columns)) == ("delimited", ["key", "value", "offset"])


def test_an_array_of_json_is_a_table_for_duckdb_alone() -> None:
    world = landed(b"{}", format={"type": "json_array"})
    assert build_hive_table(world.sink, world.index, "duckdb").form == "json_array"
    with pytest.raises(ConfigurationError, match="athena reads lines, and in format json_array a line is not always"):
        build_hive_table(world.sink, world.index, "athena")


@pytest.mark.parametrize("format", ["parquet", "avro"])
@pytest.mark.parametrize("engine", ["athena", "glue", "trino", "spark"])
def test_fields_that_differ_in_case_only_are_no_table_of_an_engine_that_ignores_case(engine: str, format: str) -> None:
    world = landed(b'{"Id":1,"id":2}', format={"type": format})
    with pytest.raises(ConfigurationError, match=f"{engine} does not distinguish cases, so fields Id and id would"):
        build_hive_table(world.sink, world.index, engine)


@pytest.mark.parametrize(
    ("engine", "format", "names"),
    [("duckdb", "parquet", ["Id", "id"]), ("athena", "csv", ["Id", "id_value"]), ("athena", "json", ["value"])],
)
def test_fields_that_differ_in_case_only_are_a_table_if_the_engine_reads_them_otherwise(
    engine: str, format: str, names: list[str]
) -> None:
    world = landed(b'{"Id":1,"id":2}', format={"type": format})
    assert list(build_hive_table(world.sink, world.index, engine).columns) == names


@pytest.mark.parametrize(
    ("engine", "template", "topics", "message"),
    [
        ("athena", "{topic}/{partition}/{offset:012}", (TOPIC, "other"), []),
        ("athena", "{topic}-{partition}-{offset:012}", (TOPIC,), []),
        ("athena", "{topic}-{partition}-{offset:012}", (TOPIC, "other"), ["athena reads every object below"]),
        ("trino", "{topic}/{partition}/{offset:012}", (TOPIC,), ["trino finds what is further down in"]),
        ("spark", "{topic}/date={hour:yyyy}/{partition}-{offset}", (TOPIC,), ["a directory has the name of field"]),
    ],
)
def test_notices_state_how_engines_behave(
    engine: str, template: str, topics: tuple[str, ...], message: list[str]
) -> None:
    world = Parts(layout={"template": template}, topics=topics, format={"type": "parquet"})
    for partition in (0, 1):
        world.land(b'{"date":1}', partition=partition)
    table = build_hive_table(world.sink, world.index, engine)
    notices = list(find_engine_differences(table, engine, world.sink, TOPIC))
    assert [text.startswith(part) for text, part in zip(notices, message, strict=True)] == [True] * len(message)


@pytest.mark.parametrize(
    ("engine", "converter", "count"),
    [("athena", "connect_json", 1), ("duckdb", "connect_json", 0), ("athena", "json", 0)],
)
def test_a_notice_warns_that_schemas_of_records_may_move_columns(engine: str, converter: str, count: int) -> None:
    world = landed(
        connect_texts(a="1") if converter == "connect_json" else b'{"a":"1"}',
        format={"type": "csv"},
        converter={"value": converter},
    )
    found = list(find_engine_differences(build_hive_table(world.sink, world.index, engine), engine, world.sink, TOPIC))
    assert ["goes by the position of columns" in text for text in found] == [True] * count


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetTable"),
        NoRegionError(),
        FileNotFoundError(2, "No such file or directory", "/missing/token"),
        ValueError("Invalid endpoint: x"),
    ],
)
def test_refusals_of_glue_are_reported_without_secrets_and_without_a_trace(
    error: Exception, run: Run, offline: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = landed(b'{"id": 1}', format={"type": "parquet"})
    target = SimpleNamespace(sink=world.sink, topic=TOPIC, index=world.index)
    monkeypatch.setattr(Request, "targets", lambda *_, **__: iter([target]))
    monkeypatch.setattr("s3lake.index.store.client.make_client", Mock(side_effect=error))
    outcome = run("ddl", offline, "--for", "glue", "--yes")
    assert outcome.code == 3
    assert f"events {TOPIC}: StoreDeniedError: Glue, table s3lake.{TOPIC}: {error}. To go on: " in outcome.err


def test_two_sinks_of_one_topic_are_not_one_table(run: Run, offline: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = [landed(b'{"id": 1}', name=name, format={"type": "parquet"}) for name in ("events", "copy")]
    targets = [SimpleNamespace(sink=world.sink, topic=TOPIC, index=world.index) for world in worlds]
    monkeypatch.setattr(Request, "targets", lambda *_, **__: iter(targets))
    outcome = run("ddl", offline, "--for", "glue")
    assert (outcome.code, outcome.out) == (2, "")
    assert f"{TOPIC} of sink events and {TOPIC} of sink copy would both be table {TOPIC}: select one" in outcome.err
