"""`s3lake preview` on the configurations of `config/documents.py`: the keys of objects, and what these hold."""

import gzip
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from s3lake import cli
from s3lake_tests.config import bases
from s3lake_tests.config.documents import NOON
from s3lake_tests.config.examples import CONFIGURATIONS, EXAMPLES, Example, record, registered

Run = Callable[..., tuple[str, str]]
Preview = Callable[..., dict[str, bytes]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The output and the notices of the console script, which has to succeed."""
    monkeypatch.setenv("S3LAKE_START", "2024-01-01T00")
    monkeypatch.setenv("S3LAKE_BOOTSTRAP_SERVERS", "kafka:9092")
    monkeypatch.setenv("AWS_ACCESS_KEY", "AKIA")
    monkeypatch.setenv("AWS_SECRET_KEY", "hush-hush")
    stored = {"aws/access-key": "AKIA", "aws/secret-key": "hush-hush"}
    monkeypatch.setattr("s3lake.config.variables.SecretsManager.read", lambda _, name: stored[name])

    def run(*arguments: str | Path) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["s3lake", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        assert ended.value.code == 0, err
        return out, err

    return run


@pytest.fixture
def preview(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Preview:
    """The command on a configuration's text and records: key -> bytes of every object; the clock is at NOON."""
    monkeypatch.setattr("time.time", lambda: NOON / 1000)

    def preview(text: str, *records: dict[str, Any]) -> dict[str, bytes]:
        config, lines, objects = tmp_path / "connector", tmp_path / "records.jsonl", tmp_path / "objects"
        config.write_text(text)
        lines.write_text("".join(json.dumps(record) + "\n" for record in records))
        out, _ = run("preview", config, "--records", lines, "--out", objects, "--json")
        keys = [json.loads(line)["key"] for line in out.splitlines()]
        return {key: (objects / key).read_bytes() for key in keys}

    return preview


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_keys_are_those_that_the_document_states(preview: Preview, example: Example) -> None:
    with registered(example) as (text, records):
        assert sorted(preview(text, *records)) == sorted(example.keys)


# Lenses


def test_json_lands_as_parquet_by_a_file_of_lenses(preview: Preview, tmp_path: Path) -> None:
    made = preview(CONFIGURATIONS["lenses: stored 1"], record("car_speed_events", {"speed": 50}))
    assert list(made) == ["car_speed/car_speed_events/0/000000000000.parquet"]
    assert pq.read_table(tmp_path / "objects" / next(iter(made))).to_pylist() == [{"speed": 50}]


def test_the_full_message_lands_as_json_by_a_file_of_lenses(preview: Preview) -> None:
    headers = {"header1": "value1", "header2": "value2"}
    made = preview(
        CONFIGURATIONS["lenses: stored 2"], record("car_speed_events", {"speed": 50}, key="car", headers=headers)
    )
    (body,) = made.values()
    assert json.loads(body) == {
        "key": "car",
        "value": {"speed": 50},
        "headers": headers,
        "metadata": {"offset": 0, "partition": 0, "timestamp": NOON - 3_600_000, "topic": "car_speed_events"},
    }


def test_bytes_land_in_an_avro_envelope_by_a_file_of_lenses(preview: Preview, tmp_path: Path) -> None:
    raw = {"base64": "AP8="}
    made = preview(CONFIGURATIONS["lenses: stored 4"], record("car_speed_events", raw, key=raw))
    with (tmp_path / "objects" / next(iter(made))).open("rb") as file:
        (row,) = fastavro.reader(file)
    assert isinstance(row, dict)
    assert (row["key"], row["value"], row["metadata"]["topic"]) == (b"\x00\xff", b"\x00\xff", "car_speed_events")


# Confluent


def test_the_complete_example_of_confluent_lands_as_its_page_shows(preview: Preview, tmp_path: Path) -> None:
    value = {"region": "us-east", "amount": 7}
    example = Example(CONFIGURATIONS["confluent: complete"], (record("transactions", value, offset=12),), ())
    with registered(example) as (text, records):
        made = preview(text, *records)
    assert list(made) == ["topics/transactions/year=2024/month=01/day=15/hour=10/transactions+0+0000000012.parquet"]
    assert pq.read_table(tmp_path / "objects" / next(iter(made))).to_pylist() == [value]


# Aiven


def test_aiven_object_names_of_the_prefix_and_rows_of_the_fields(preview: Preview) -> None:
    made = preview(
        CONFIGURATIONS["aiven: rest"], record("source_topic", "value", key="key0", timestamp=1_554_210_895_000)
    )
    assert list(made) == ["example-s3-sink/source_topic-0-00000000000000000000.gz"]
    (body,) = made.values()
    assert gzip.decompress(body) == b"dmFsdWU=,a2V5MA==,1554210895000"


# Iggy


def test_lines_land_below_the_path_of_a_file_of_iggy(preview: Preview) -> None:
    topic = "app_logs.api_requests"
    made = preview(
        CONFIGURATIONS["iggy: readme"],
        record(topic, {"a": 1}, partition=1, headers={"h": "x"}),
        record(topic, {"a": 2}, partition=1),
    )
    assert list(made) == [
        "iggy/raw/app_logs/api_requests/2024-01-15/09/00001-00000000000000000000-00000000000000000001.jsonl"
    ]
    (body,) = made.values()
    first, second = map(json.loads, body.splitlines())
    assert list(first) == ["offset", "timestamp", "stream", "topic", "partition_id", "headers", "payload"]
    assert first["timestamp"] == "2024-01-15T09:30:00Z"
    assert (first["stream"], first["topic"], first["partition_id"]) == ("app_logs", "api_requests", 1)
    assert (first["headers"], first["payload"], second["payload"]) == ({"h": "x"}, {"a": 1}, {"a": 2})


# All of them


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_check_and_convert_take_every_connector_and_print_no_secret(run: Run, tmp_path: Path, name: str) -> None:
    config = tmp_path / "connector"
    config.write_text(CONFIGURATIONS[name])
    checked, notices_of_check = run("check", config)
    converted, notices = run("convert", config)
    assert "hush" not in checked + notices_of_check + converted + notices
    assert "kafka.bootstrap_servers" in checked
    environment = {**bases.ENVIRONMENT, **dict.fromkeys(_list_variables(notices), "x")}
    assert bases.native(converted, environment).config.sinks


def _list_variables(notices: str) -> list[str]:
    return re.findall(r"is secret: set (\w+)", notices.replace("\n", " "))
