"""The command line: exit codes. 0 success, 1 differences, 2 configuration or input, 3 failed while running."""

import json
import os
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import jsonschema
import pytest
import yaml

from s3lake import cli
from s3lake.cli.request import Request
from s3lake.errors import KafkaUnavailableError
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake_tests.index.commit.kafka import TOPIC
from s3lake_tests.kit.console import Run
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.lake import NOBODY
from s3lake_tests.kit.tables import rows
from s3lake_tests.land.at_hand import FIRST, TopicInMemory

TEN = "2026-01-05T10"


def commands(name: str, command: Any) -> dict[str, set[str | None]]:
    """Every command by its words, and what its arguments are called."""
    if not hasattr(command, "commands"):
        return {name: {part.metavar for part in command.params if part.param_type_name == "argument"}}
    inside = (commands(f"{name} {word}".strip(), part) for word, part in command.commands.items())
    return {words: parameters for part in inside for words, parameters in part.items()}


COMMANDS = commands("", cli.program())


class TestSchema:
    def test_editors_find_the_mistakes_that_check_finds(self, run: Run) -> None:
        validator = jsonschema.Draft202012Validator(json.loads(run("schema", "editor").out))
        configuration = yaml.safe_load(NOBODY)
        assert list(validator.iter_errors(configuration)) == []
        configuration["sinks"][0]["buckte"] = configuration["sinks"][0].pop("bucket")
        messages = sorted(error.message for error in validator.iter_errors(configuration))
        assert messages == [
            "'bucket' is a required property",
            "Additional properties are not allowed ('buckte' was unexpected)",
        ]


class TestVersion:
    def test_is_that_of_the_package(self, run: Run) -> None:
        assert run("--version").out == f"s3lake {metadata.version('s3lake')}\n"


# Of some the configuration is changed, from one text to another.
INVALID = """
verify --sink evnets => --sink evnets: unknown sink; the configuration has events
verify --topic clicks => --topic clicks: no such topic is landed; topics of all sinks: orders
verify --from yesterday --to 2026-01-05T10 => 'yesterday' is not an hour: write it as YYYY-MM-DDTHH in UTC
land --sink evnets => --sink evnets: unknown sink; the configuration has events
land --from 2026-01-01T00 --to 2026-01-01T05 =>
    no sink has an hour in this range: they begin events at 2026-01-05T00, and now it is
rewrite --from 2026-01-05T10 => --to H missing: this command never changes everything
verify --from 2026-01-05T10 --to 2026-01-05T08 => 2026-01-05T10 is later than 2026-01-05T08
compact --from '' --to '' => '' is not an hour
rewrite --from 2026-01-05T10 --to '' => '' is not an hour
dead-letters replay --hour '' => '' is not an hour
ddl --for athena --database '' => --database is empty: write the name of a database
adopt --offset 0=1 --offset 0=2 => --offset names a topic-partition twice
spark --check http://x:1 => --check http://x:1: expected the address of a server, as sc://HOST:PORT
retention --older-than 30 => --older-than 30: expected at least 1h, with its unit
rewrite => --from H and --to H missing: this command never changes everything
metrics --listen 9108 => --listen 9108: write HOST:PORT, for example 127.0.0.1:9108
metrics --listen 127.0.0.1:99999 => --listen 127.0.0.1:99999: write HOST:PORT, for example 127.0.0.1:9108
metrics --listen 127.0.0.1: => --listen 127.0.0.1:: write HOST:PORT, for example 127.0.0.1:9108
metrics --listen http://127.0.0.1:9108/metrics => write HOST:PORT, for example 127.0.0.1:9108
check | bucket: -> buckte: => s3lake.yaml:10:
check | bucket: -> buckte: => did you mean bucket?
check | sasl.username: me -> ssl.truststore.location: /ca.jks =>
    ssl.truststore.location cannot be translated for librdkafka
preview --records RECORDS | bucket: lake -> bucket: l => a bucket has 3 to 63
preview --records RECORDS | topics -> topcis => did you mean topics?
preview --records RECORDS | topics: [orders] -> topics: [clicks] => no sink reads topic 'orders'
"""


class TestExitCodeTwo:
    """Configuration or input: the message says what to change."""

    def test_a_command_without_a_configuration_ends_with_2(self, run: Run) -> None:
        outcome = run("check")
        assert outcome.code == 2
        assert "set S3LAKE_CONFIG to a file, a directory or an address, or give CONFIG" in outcome.err

    @pytest.mark.parametrize(("command", "message"), rows(INVALID))
    def test_an_invalid_option_or_setting_ends_with_2(
        self, command: str, message: str, run: Run, offline: Path, tmp_path: Path
    ) -> None:
        words, _, change = command.partition(" | ")
        old, _, new = change.partition(" -> ")
        offline.write_text(NOBODY.replace(old, new))
        records = tmp_path / "records.jsonl"
        records.write_text('{"topic": "orders", "value": 1}\n')
        outcome = run(*[str(records) if word == "RECORDS" else word for word in shlex.split(words)], offline)
        assert outcome.code == 2
        assert message in outcome.err
        assert "hunter2" not in outcome.err

    @pytest.mark.parametrize("arguments", [("--nonsense",), ("verfiy",), ("index", "rollback")])
    def test_an_unknown_command_or_a_missing_option_ends_with_2(self, arguments: tuple[str, ...], run: Run) -> None:
        assert run(*arguments).code == 2

    @pytest.mark.parametrize("command", COMMANDS)
    def test_an_unknown_option_ends_with_2(self, command: str, run: Run) -> None:
        assert run(*command.split(), "--nonsense").code == 2

    @pytest.mark.parametrize("command", [name for name, parameters in COMMANDS.items() if "CONFIG" in parameters])
    def test_a_configuration_that_does_not_exist(self, command: str, run: Run, tmp_path: Path) -> None:
        missing = {
            "ddl": ["--for", "athena"],
            "erase": ["--where", "true"],
            "preview": ["--records", "-"],
            "restore": ["--into", "again", "--sink", "events", "--topic", "orders", "--from", TEN, "--to", TEN],
            "test": [str(tmp_path)],
            "rewrite": ["--from", TEN, "--to", TEN],
            "index accept": ["--topic", "orders"],
            "index rollback": ["--sink", "events", "--topic", "orders", "--hour", TEN],
        }.get(command, [])
        outcome = run(*command.split(), tmp_path / "missing.yaml", *missing)
        assert outcome.code == 2
        assert "missing.yaml: no such file" in outcome.err


class TestExitCodeThree:
    """It failed while running: trying again may help."""

    @pytest.mark.parametrize("command", [("verify",), ("index", "show"), ("clean",), ("land",)])
    def test_s3_is_down(self, command: tuple[str, ...], run: Run, offline: Path) -> None:
        outcome = run(*command, offline)
        assert outcome.code == 3
        assert "StoreUnavailableError: " in outcome.err
        assert "http://127.0.0.1:1" in outcome.err
        assert "hunter2" not in outcome.err

    @pytest.mark.parametrize("command", [("verify",), ("status",), ("land",), ("metrics",)])
    def test_topics_of_an_expression_are_unknown_while_kafka_is_down(
        self, command: tuple[str, ...], run: Run, offline: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        down = KafkaUnavailableError("Kafka at 127.0.0.1:1 did not answer")
        monkeypatch.setattr(KafkaOffsets, "topics", Mock(side_effect=down))
        offline.write_text(NOBODY.replace("topics: [orders]", "topics_regex: 'shop[.].*'"))
        outcome = run(*command, offline)
        assert (outcome.code, outcome.err) == (3, f"KafkaUnavailableError: {down}\n")

    @pytest.mark.long
    def test_a_closed_pipe_is_not_reported_as_a_difference(self, offline: Path) -> None:
        command = [Path(sys.executable).parent / "s3lake", "check", offline, "--json"]
        reader, writer = os.pipe()
        os.close(reader)
        ended = subprocess.run(
            command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False
        )
        os.close(writer)
        assert (ended.returncode, ended.stderr) == (141, "")

    def test_a_topic_that_fails_stops_no_other(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        broken, good = TopicInMemory(), TopicInMemory()
        broken.produce(0, b"{ broken")
        good.produce(0, b'{"id": 1}')
        monkeypatch.setattr(Request, "targets", lambda *_, **__: iter([broken.target(), good.target()]))
        outcome = run("land", "--from", FIRST, "--to", FIRST)
        assert outcome.code == 3
        assert f"events {TOPIC} {FIRST}: 1 offset = 1 row;" in outcome.out
        assert f"events {TOPIC}: RecordError: " in outcome.err
        assert f"land events {TOPIC}: offsets: 1 of 1" in outcome.err.splitlines()

    def test_an_unexpected_error_is_not_reported_as_a_difference(
        self, run: Run, offline: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("s3lake.cli.check.describe_sink", lambda _: 1 / 0)
        outcome = run("check", offline)
        assert outcome.code == 3
        assert "ZeroDivisionError" in outcome.err
