"""The command line: what it prints, and its exit codes. 0 fine, 1 differences, 2 configuration or input, 3 failed."""

import contextlib
import functools
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import psutil
import pytest
import yaml

from s3lake import cli, hours
from s3lake.commit.index import File, Manifest, Read
from s3lake.config import load as configuration
from s3lake.source.kafka import source
from s3lake_tests.conftest import slow_after
from s3lake_tests.lake import NOBODY, START, Lake, at, values
from s3lake_tests.processes import MARK, marked

TEN = "2026-01-05T10"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What `--json` printed."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Outcome]


def commands(name: str, command: Any) -> dict[str, set[str | None]]:
    """Every command by its words, and what its arguments are called."""
    if not hasattr(command, "commands"):
        return {name: {part.metavar for part in command.params if part.param_type_name == "argument"}}
    inside = (commands(f"{name} {word}".strip(), part) for word, part in command.commands.items())
    return {words: parameters for part in inside for words, parameters in part.items()}


COMMANDS = commands("", cli.program())


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The console script, in this process."""

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["s3lake", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        code = ended.value.code
        return Outcome(code if isinstance(code, int) else 0, out, err)

    return run


@pytest.fixture
def nobody(tmp_path: Path) -> Path:
    """A configuration whose Kafka and S3 are down."""
    path = tmp_path / "s3lake.yaml"
    path.write_text(NOBODY)
    return path


class TestCheck:
    def test_shows_what_each_sink_comes_to(self, run: Run, nobody: Path) -> None:
        outcome = run("check", nobody)
        assert outcome.code == 0
        for line in ("sink events", "topics +orders", "format +json none", "flush +128MiB, at latest after 5m"):
            assert re.search(line, outcome.out), outcome.out
        assert re.search(r"key +orders/date=2026-01-05/hour=00/0-000000000000\.json", outcome.out)

    def test_shows_every_setting_that_was_made_and_where_it_was_read_from(self, run: Run, nobody: Path) -> None:
        rows = run("check", nobody).out.splitlines()
        (name,) = [row for row in rows if row.startswith("sinks.0.name ")]
        assert re.search(r"events +\S+/s3lake\.yaml:\d+:\d+ sinks\[0\]\.name", name)
        assert not any(row.startswith("sinks.0.flush.size ") for row in rows)

    def test_all_shows_defaults_too(self, run: Run, nobody: Path) -> None:
        assert re.search(r"sinks\.0\.flush\.size +128MiB +default", run("check", nobody, "--all").out)

    def test_shows_what_a_connector_does_otherwise_without_being_asked_to(self, run: Run) -> None:
        quickstart = Path(__file__).parents[1] / "config" / "public" / "quickstart.properties"
        outcome = run("check", quickstart)
        assert re.search(r"sinks\.0\.prefix +topics +default", outcome.out), outcome.out

    def test_gives_the_effective_configuration_as_json(self, run: Run, nobody: Path) -> None:
        effective, summary = run("check", nobody, "--json").rows
        (sink,) = effective["sinks"]
        assert sink["flush"] == {"count": None, "size": "128MiB", "interval": "5m", "span": None, "merge": True}
        assert (sink["close_grace"], sink["hours_per_run"], sink["memory_budget"]) == ("5m", 24, "512MB")
        assert (sink["from"], sink["exactly_once"], sink["index"]) == ("start", True, {"prefix": ".indexes"})
        assert (summary["sink"], summary["topics"], summary["bucket"]) == ("events", ["orders"], "lake")

    @pytest.mark.parametrize("option", [(), ("--json",)])
    def test_masks_secrets(self, option: tuple[str, ...], run: Run, nobody: Path) -> None:
        outcome = run("check", nobody, *option)
        assert "hunter2" not in outcome.out + outcome.err
        assert outcome.out.count("********") == 2

    def test_strict_refuses_a_configuration_that_has_notices(self, run: Run, nobody: Path) -> None:
        quickstart = Path(__file__).parents[1] / "config" / "public" / "quickstart.properties"
        notice = re.search(r"notice: (.+)", run("check", quickstart).out)
        assert notice
        outcome = run("check", quickstart, "--strict")
        assert outcome.code == 2
        assert notice[1] in outcome.err
        assert run("check", nobody, "--strict").code == 0

    def test_opens_each_destination_that_hours_are_forwarded_to(self, run: Run, nobody: Path) -> None:
        forward = "{to: postgres, options: {conninfo: 'host=db password=hunter2-pg', table: 'a;b'}}"
        nobody.write_text(NOBODY.replace("bucket: lake,", f"bucket: lake, forwards: [{forward}],"))
        outcome = run("check", nobody)
        assert outcome.code == 2
        assert "sink events: forwards[0]: table 'a;b'" in outcome.err
        nobody.write_text(nobody.read_text().replace("a;b", "lake.orders"))
        outcome = run("check", nobody)
        assert outcome.code == 0
        assert re.search(r"forwards +postgres", outcome.out)
        assert "hunter2" not in outcome.out + outcome.err

    def test_lists_settings_without_effect_in_one_line_and_with_reasons_on_request(self, run: Run) -> None:
        strimzi = Path(__file__).parents[1] / "config" / "public" / "plugin-version.json"
        short, long = run("check", strimzi).out, run("check", strimzi, "--all").out
        assert "without effect here: tasks.max.enforce, connector.plugin.version (--all says why)" in short
        assert "s3lake has no plugins" not in short
        assert re.search(r"connector\.plugin\.version +s3lake has no plugins", long)

    def test_finds_properties_that_librdkafka_cannot_have(self, run: Run, nobody: Path) -> None:
        nobody.write_text(NOBODY.replace("sasl.username: me", "ssl.truststore.location: /ca.jks"))
        outcome = run("check", nobody)
        assert outcome.code == 2
        assert "ssl.truststore.location cannot be translated for librdkafka" in outcome.err

    def test_takes_the_file_that_the_environment_names(
        self, run: Run, nobody: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("S3LAKE_CONFIG", str(nobody))
        assert run("check").code == 0

    def test_connect_says_what_cannot_be_reached(self, run: Run, nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        hasty = functools.partial(source.KafkaSource, timeout_s=0.2)
        monkeypatch.setattr(source, "KafkaSource", lambda settings, _: hasty(settings))
        outcome = run("check", nobody, "--connect", "--json")
        assert outcome.code == 3
        said = {row["check"]: row["outcome"] for row in outcome.rows if "check" in row}
        assert list(said) == [
            "kafka 127.0.0.1:1",
            "topics",
            "bucket lake of sink events",
            "conditional writes in bucket lake of sink events",
            "uploads in bucket lake of sink events",
        ]
        kafka, topics, bucket, *trials = said.values()
        assert "127.0.0.1:1" in kafka
        assert "127.0.0.1:1" in bucket
        assert {topics, *trials} == {"not tried, after what failed before it"}
        assert "hunter2" not in outcome.out

    def test_connect_is_fine_where_everything_is(self, run: Run, lake: Lake, tmp_path: Path) -> None:
        path = tmp_path / "s3lake.yaml"
        path.write_text(lake.config_text(f"name: events, topics: ['{lake.topic()}']"))
        outcome = run("check", path, "--connect")
        assert outcome.code == 0
        assert outcome.out.count(": ok\n") == 5
        assert lake.uploads() == []
        assert lake.objects(".indexes") == []

    @pytest.mark.parametrize("exactly_once", slow_after(1, "the same request", ["true", "false"]))
    def test_connect_finds_that_the_bucket_is_not_there(
        self, exactly_once: str, run: Run, lake: Lake, tmp_path: Path
    ) -> None:
        lake.bucket = "gone-with-the-wind"
        path = tmp_path / "s3lake.yaml"
        path.write_text(lake.config_text(f"name: events, topics: [orders], exactly_once: {exactly_once}"))
        outcome = run("check", path, "--connect")
        assert outcome.code == 3
        assert re.search("bucket gone-with-the-wind of sink events: .*NoSuchBucket", outcome.out)


class TestPreview:
    def preview(self, run: Run, config: Path, *values: str, options: tuple[str, ...] = ("--json",)) -> Outcome:
        records = config.parent / "records.jsonl"
        told = [{"topic": "orders", "value": value, "timestamp": hours.start_ms(START)} for value in values]
        records.write_text("".join(json.dumps(record) + "\n" for record in told))
        return run("preview", config, "--records", records, *options)

    def test_prints_an_object_a_line(self, run: Run, nobody: Path) -> None:
        outcome = self.preview(run, nobody, "1", "2")
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.rows == [
            {
                "key": "orders/date=2026-01-05/hour=08/0-000000000000.json",
                "topic": "orders",
                "partition": 0,
                "first_offset": 0,
                "last_offset": 1,
                "records": 2,
                "bytes": 4,
            }
        ]

    def test_writes_the_objects_where_it_is_told(self, run: Run, nobody: Path, tmp_path: Path) -> None:
        assert self.preview(run, nobody, "1", options=("--out", str(tmp_path / "out"))).code == 0
        assert (
            tmp_path / "out" / "orders" / "date=2026-01-05" / "hour=08" / "0-000000000000.json"
        ).read_bytes() == b"1\n"

    def test_one_refused_record_is_exit_code_one_and_no_object(self, run: Run, nobody: Path) -> None:
        outcome = self.preview(run, nobody, "1", "{")
        assert (outcome.code, outcome.out) == (1, "")
        error = json.loads(outcome.err)
        assert (error["offset"], error["stage"]) == (1, "convert")

    def test_dead_letters_are_objects_and_no_failure(self, run: Run, nobody: Path) -> None:
        nobody.write_text(NOBODY.replace("bucket: lake,", "bucket: lake, errors: {tolerance: all},"))
        outcome = self.preview(run, nobody, "1", "{")
        assert outcome.code == 0
        assert [row["key"].partition("/")[0] for row in outcome.rows] == ["_dead_letters", "orders"]
        assert json.loads(outcome.err)["offset"] == 1

    @pytest.mark.parametrize("change", [("lake", "l"), ("topics", "topcis")])
    def test_a_wrong_configuration_is_exit_code_two(self, change: tuple[str, str], run: Run, nobody: Path) -> None:
        nobody.write_text(NOBODY.replace(*change))
        assert self.preview(run, nobody, "1").code == 2

    def test_no_records_are_nothing_to_preview(self, run: Run, nobody: Path) -> None:
        outcome = self.preview(run, nobody, options=())
        assert (outcome.code, outcome.out) == (
            0,
            f"nothing to preview: {nobody.parent}/records.jsonl has no record\n",
        )

    def test_records_that_no_sink_takes_are_exit_code_two(self, run: Run, nobody: Path) -> None:
        nobody.write_text(NOBODY.replace("topics: [orders]", "topics: [clicks]"))
        outcome = self.preview(run, nobody, "1")
        assert outcome.code == 2
        assert "no sink reads topic 'orders'" in outcome.err


EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


class TestTest:
    """`s3lake test`, with the example of the documentation."""

    @pytest.fixture
    def cases(self, tmp_path: Path) -> Path:
        return Path(shutil.copy(EXAMPLES / "cases.yaml", tmp_path))

    def test_is_fine_where_everything_is_as_expected(self, run: Run, cases: Path) -> None:
        outcome = run("test", EXAMPLES / "s3lake.yaml", cases)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.splitlines() == [
            "ok: events lie by their type, below the date of their hour",
            "ok: what is no JSON becomes a dead letter, and stops nothing",
            "2 cases, all as expected",
        ]

    def test_shows_what_differs_and_ends_with_one(self, run: Run, cases: Path) -> None:
        cases.write_text(cases.read_text().replace("stage: convert", "stage: layout"))
        outcome = run("test", EXAMPLES / "s3lake.yaml", cases)
        assert outcome.code == 1
        assert outcome.out.splitlines()[1:] == [
            f"differs: what is no JSON becomes a dead letter, and stops nothing ({cases}:17:5)",
            "  dead_letters:",
            '    -{"offset": 0, "stage": "layout"}',
            '    +{"offset": 0, "stage": "convert"}',
            "1 of 2 cases differ (- expected, + actual)",
        ]
        rows = run("test", EXAMPLES / "s3lake.yaml", cases, "--json").rows
        assert [(row["passed"], [part["what"] for part in row["differences"]]) for row in rows] == [
            (True, []),
            (False, ["dead_letters"]),
        ]

    def test_a_case_of_which_nothing_is_expected_is_no_success(self, run: Run, cases: Path) -> None:
        cases.write_text("cases: [{name: a, records: [{topic: orders, value: {type: click}}]}]")
        assert run("test", EXAMPLES / "s3lake.yaml", cases).code == 1

    def test_notices_of_the_configuration_can_be_expected(self, run: Run, nobody: Path, cases: Path) -> None:
        nobody.write_text(NOBODY.replace("bucket: lake,", "bucket: lake, exactly_once: false,"))
        cases.write_text("notices: []\ncases: [{name: a, records: [], expect: {files: 0}}]\n")
        outcome = run("test", nobody, cases)
        assert outcome.code == 1
        assert "    +sink events: exactly_once is off" in outcome.out
        cases.write_text("notices: [exactly_once is off]\ncases: [{name: a, records: [], expect: {files: 0}}]\n")
        assert run("test", nobody, cases).code == 0

    def test_a_file_that_is_none_of_cases_is_exit_code_two(self, run: Run, cases: Path) -> None:
        cases.write_text("cases: [{name: a, records: [], expects: {}}]")
        outcome = run("test", EXAMPLES / "s3lake.yaml", cases)
        assert outcome.code == 2
        assert "did you mean expect?" in outcome.err


class TestConvert:
    def test_prints_native_yaml_with_variables_for_secrets(
        self, run: Run, nobody: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outcome = run("convert", nobody)
        assert outcome.code == 0
        assert "hunter2" not in outcome.out + outcome.err
        for variable, secret in (("KAFKA", "hunter2-kafka"), ("S3_CREDENTIALS_SECRET", "hunter2-s3")):
            (name,) = re.findall(rf"\$\{{(S3LAKE_SECRET_{variable}\w*)\}}", outcome.out)
            assert name in outcome.err
            monkeypatch.setenv(name, secret)
        again = tmp_path / "again.yaml"
        again.write_text(outcome.out)
        assert configuration.load(again) == configuration.load(nobody)

    def test_options_of_a_forward_that_have_a_secret_become_variables(
        self, run: Run, nobody: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        conninfo = "host=db password=hunter2-pg"
        forward = f"{{to: postgres, options: {{conninfo: '{conninfo}', table: lake.orders}}}}"
        nobody.write_text(NOBODY.replace("bucket: lake,", f"bucket: lake, forwards: [{forward}],"))
        outcome = run("convert", nobody)
        for name in re.findall(r"\$\{(S3LAKE_SECRET_\w+)\}", outcome.out):
            monkeypatch.setenv(name, conninfo if "CONNINFO" in name else "hunter2")
        assert "hunter2" not in outcome.out + outcome.err
        again = tmp_path / "again.yaml"
        again.write_text(outcome.out)
        assert configuration.load(again).sinks[0].forwards == configuration.load(nobody).sinks[0].forwards


class TestInit:
    def test_answers_become_a_configuration_that_check_takes(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "first.yaml"
        answers = ["kafka:9092", "orders, clicks", "acme-lake", "raw", "", "avro", "2026-11-20T05"]
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(answers) + "\n"))
        outcome = run("init", path)
        assert outcome.code == 0, outcome.err
        assert f"{path} is written" in outcome.out
        (sink,) = run("check", path, "--json").rows[0]["sinks"]
        assert (sink["topics"], sink["bucket"], sink["prefix"]) == (["orders", "clicks"], "acme-lake", "raw")
        assert (sink["format"]["type"], sink["start"]) == ("avro", "2026-11-20T05")

    def test_an_answer_that_cannot_be_writes_nothing(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "first.yaml"
        monkeypatch.setattr(sys, "stdin", io.StringIO("kafka:9092\norders\nNo_Bucket\n\n\n\n\n"))
        outcome = run("init", path)
        assert outcome.code == 2
        assert "a bucket has 3 to 63 of a-z" in outcome.err
        assert not path.exists()

    def test_answers_that_end_too_early_are_input_that_cannot_be(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("kafka:9092\n"))
        outcome = run("init", tmp_path / "first.yaml")
        assert outcome.code == 2
        assert "standard input ended before every question was answered" in outcome.err

    def test_a_connector_s_file_is_taken_over(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "first.yaml"
        source = Path(__file__).parents[1] / "config" / "public" / "quickstart.properties"
        assert run("init", path, "--from", source).code == 0
        assert run("check", path, "--json").rows[0]["sinks"][0]["bucket"] == "acme-lake"

    def test_a_file_that_is_there_is_not_written_over(self, run: Run, nobody: Path) -> None:
        outcome = run("init", nobody)
        assert outcome.code == 2
        assert f"{nobody} exists already" in outcome.err
        assert nobody.read_text() == NOBODY


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


class TestExitCodeTwo:
    """Configuration or input: the message says what to change."""

    def test_no_configuration(self, run: Run) -> None:
        outcome = run("check")
        assert outcome.code == 2
        assert "set S3LAKE_CONFIG to a file, a directory or an address, or give CONFIG" in outcome.err

    def test_no_such_file(self, run: Run, tmp_path: Path) -> None:
        outcome = run("check", tmp_path / "missing.yaml")
        assert outcome.code == 2
        assert "missing.yaml: no such file" in outcome.err

    def test_a_name_that_is_not_known(self, run: Run, nobody: Path) -> None:
        nobody.write_text(NOBODY.replace("bucket:", "buckte:"))
        outcome = run("check", nobody)
        assert outcome.code == 2
        assert re.search(r"s3lake\.yaml:10:\d+: .*did you mean bucket\?", outcome.err)
        assert "hunter2" not in outcome.err

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("verify", "--sink", "evnets"), "--sink evnets: unknown sink; the configuration has events"),
            (
                ("verify", "--topic", "clicks"),
                "--topic clicks: no such topic is landed; topics of all sinks: orders",
            ),
            (
                ("verify", "--from", "yesterday", "--to", TEN),
                "'yesterday' is no hour: write it as YYYY-MM-DDTHH in UTC",
            ),
            (("land", "--sink", "evnets"), "--sink evnets: unknown sink; the configuration has events"),
            (
                ("land", "--from", "2026-01-01T00", "--to", "2026-01-01T05"),
                "no sink has an hour in this range: they begin events at 2026-01-05T00, and now it is ",
            ),
            (("rewrite", "--from", TEN), "--to H missing: this command never changes everything"),
            (("verify", "--from", TEN, "--to", START), "--from 2026-01-05T10 is later than --to 2026-01-05T08"),
            (("rewrite",), "--from H and --to H missing: this command never changes everything"),
        ],
    )
    def test_options_that_cannot_be(self, arguments: tuple[str, ...], message: str, run: Run, nobody: Path) -> None:
        outcome = run(*arguments, nobody)
        assert outcome.code == 2
        assert message in outcome.err

    @pytest.mark.parametrize("arguments", [("--nonsense",), ("verfiy",), ("index", "rollback")])
    def test_what_is_no_command_or_lacks_an_option(self, arguments: tuple[str, ...], run: Run) -> None:
        assert run(*arguments).code == 2

    @pytest.mark.parametrize("command", COMMANDS)
    def test_an_option_that_no_command_has(self, command: str, run: Run) -> None:
        assert run(*command.split(), "--nonsense").code == 2

    @pytest.mark.parametrize("command", [name for name, parameters in COMMANDS.items() if "CONFIG" in parameters])
    def test_a_configuration_that_is_not_there(self, command: str, run: Run, tmp_path: Path) -> None:
        missing = {
            "ddl": ["--for", "athena"],
            "erase": ["--where", "true"],
            "preview": ["--records", "-"],
            "restore": ["--into", "again", "--sink", "events", "--topic", "orders", "--from", TEN, "--to", TEN],
            "test": [str(tmp_path / "cases.yaml")],
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
    def test_s3_is_down(self, command: tuple[str, ...], run: Run, nobody: Path) -> None:
        outcome = run(*command, nobody)
        assert outcome.code == 3
        assert "StoreUnavailableError: " in outcome.err
        assert "http://127.0.0.1:1" in outcome.err
        assert "hunter2" not in outcome.err

    @pytest.mark.long
    def test_who_reads_no_further_finds_no_difference(self, nobody: Path) -> None:
        command = [Path(sys.executable).parent / "s3lake", "check", nobody, "--json"]
        reader, writer = os.pipe()
        os.close(reader)
        ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        os.close(writer)
        assert (ended.returncode, ended.stderr) == (141, "")

    def test_what_nobody_thought_of_is_no_difference_found(
        self, run: Run, nobody: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("s3lake.cli.check.describe_sink", lambda _: 1 / 0)
        outcome = run("check", nobody)
        assert outcome.code == 3
        assert "ZeroDivisionError" in outcome.err


class TestOnLandedHours:
    """Two hours of two topic-partitions, of a sink with one dead letter."""

    @pytest.fixture
    def landed(self, lake: Lake) -> str:
        topic = lake.topic(partitions=2)
        lake.produce(topic, values(20), at(START, 5), 0)
        lake.produce(topic, [*values(10), b"{ broken"], at(TEN, 5), 1)
        lake.landing(topic, "errors: {tolerance: all}", at("2026-01-06T00")).land([START, TEN])
        return topic

    @pytest.fixture
    def config(self, lake: Lake, landed: str, tmp_path: Path) -> Path:
        path = tmp_path / "s3lake.yaml"
        path.write_text(lake.config_text(f"name: events, topics: ['{landed}'], errors: {{tolerance: all}}"))
        return path

    @pytest.mark.slow("lands two hours for one line of output")
    def test_verify_names_the_hour_that_has_no_tile(self, run: Run, config: Path, landed: str) -> None:
        outcome = run("verify", config, "--to", TEN)
        assert outcome.code == 1  # of the hour between the two there is no tile
        assert f"not landed: {landed} 2026-01-05T09: 0 offsets, no tile" in outcome.out.splitlines()
        assert outcome.out.splitlines()[-1] == (
            "compared 31 records of Kafka: 30 landed, 1 dead letters, in 2 data files and 1 dead-letter files; "
            "not landed 0, missing 0, duplicated 0"
        )

    @pytest.mark.slow("lands two hours for one line of output")
    def test_verify_has_a_line_for_every_topic_partition_of_every_hour(
        self, run: Run, config: Path, landed: str
    ) -> None:
        rows = [row for row in run("verify", config, "--to", TEN, "--json").rows if "kafka_records" in row]
        assert {(row["topic"], row["hour"], row["partition"]) for row in rows} >= {(landed, START, 0), (landed, TEN, 1)}
        assert sum(row["landed"] for row in rows) == 30
        (total,) = run("verify", config, "--from", TEN, "--to", TEN, "--quiet").out.splitlines()
        assert total.startswith("compared 11 records")

    @pytest.mark.slow("lands two hours for one line of output")
    def test_verify_of_some_hours_only(self, run: Run, config: Path) -> None:
        outcome = run("verify", config, "--from", TEN, "--to", TEN)
        assert outcome.code == 0
        assert outcome.out.splitlines()[-1] == (
            "compared 11 records of Kafka: 10 landed, 1 dead letters, in 1 data files and 1 dead-letter files; "
            "not landed 0, missing 0, duplicated 0"
        )

    def test_verify_names_what_was_never_landed_with_its_offsets(
        self, run: Run, config: Path, landed: str, lake: Lake
    ) -> None:
        lake.produce(landed, values(7), at("2026-01-05T12", 5), 0)
        outcome = run("verify", config, "--from", TEN, "--to", "2026-01-05T12", "--allow-open")
        assert outcome.code == 1
        lines = [line for line in outcome.out.splitlines() if line.startswith("not landed: ")]
        assert lines == [
            f"not landed: {landed} 2026-01-05T11: 0 offsets, no tile",
            f"not landed: {landed} 2026-01-05T12: 7 offsets, no tile; partition 0: 20 to 26",
        ]
        assert "not landed 7, missing 0" in outcome.out.splitlines()[-1]
        rows = run("verify", config, "--from", TEN, "--to", "2026-01-05T12", "--json").rows
        (row,) = [row for row in rows if row.get("not_landed") == 7 and "difference" in row]
        assert (row["hour"], row["offsets"], row["under_way"]) == ("2026-01-05T12", {"0": [20, 27]}, False)

    @pytest.mark.slow("lands two hours for one line of output")
    def test_verify_of_hours_that_no_sink_has_is_a_mistake_of_the_question(self, run: Run, config: Path) -> None:
        outcome = run("verify", config, "--from", "2025-01-01T00", "--to", "2025-01-01T05")
        assert outcome.code == 2
        assert f"no sink has an hour in this range: they begin events at {START}" in outcome.err

    @pytest.mark.slow("lands two hours for one line of output")
    def test_verify_of_the_hour_under_way_may_allow_what_waits(
        self, run: Run, config: Path, landed: str, lake: Lake
    ) -> None:
        now = int(time.time() * 1000)
        lake.produce(landed, values(3), now, 0)
        present = hours.key_of_ms(now)
        assert run("verify", config, "--from", present).code == 1
        outcome = run("verify", config, "--from", present, "--allow-open")
        assert outcome.code == 0
        assert "3 offsets, no tile (allowed)" in outcome.out

    @pytest.mark.slow("lands two hours for one line of output")
    def test_verify_without_a_terminal_repeats_no_line(self, run: Run, config: Path) -> None:
        lines = run("verify", config, "--from", TEN, "--to", TEN).err.splitlines()
        assert lines.count("verify: offsets compared: 11 of 11") == 1
        assert len(lines) == len(set(lines))

    def test_verify_finds_what_is_missing(self, run: Run, config: Path, landed: str, lake: Lake) -> None:
        lake.store.delete(next(key for key in lake.objects() if key.startswith(f"{landed}/date=") and "/0-" in key))
        outcome = run("verify", config, "--to", TEN)
        assert outcome.code == 1
        assert "missing 20, duplicated 0" in outcome.out
        assert any(line.startswith("object: ") for line in outcome.out.splitlines())

    def test_verify_finds_what_was_changed(self, run: Run, config: Path, lake: Lake) -> None:
        key = next(key for key in lake.objects() if "_dead_letters" not in key)
        lake.store.put(key, lake.body(key).replace(b'"t1"', b'"t9"', 1))
        rows = run("verify", config, "--to", START, "--json").rows
        assert rows[-1]["missing"] == rows[-1]["duplicated"] == 1
        assert {row["difference"] for row in rows if "difference" in row} >= {"missing", "duplicated"}

    def test_index_show_is_a_table_of_hours(self, run: Run, config: Path, landed: str) -> None:
        outcome = run("index", "show", config)
        assert outcome.code == 0
        lines = outcome.out.splitlines()
        assert lines[0].strip() == f"events: {landed}, sealed up to {START}"
        assert lines[1].split() == ["hour", "state", "offsets", "landed", "commits", "pending", "garbage", "expired"]
        assert lines[2].split() == [START, "sealed", "20", "20", "1", "0", "0"]
        assert lines[3].split() == [TEN, "sealed", "11", "11", "1", "0", "0"]
        of_range = run("index", "show", config, "--from", TEN, "--json").rows
        assert [row["hour"] for row in of_range] == [TEN]

    @pytest.mark.slow("lands two hours for one line of output")
    def test_status_is_read_from_kafka_and_the_index(self, run: Run, config: Path, landed: str, lake: Lake) -> None:
        lake.produce(landed, values(7), at(TEN, 70), 0)
        (status,) = run("status", config, "--json").rows
        assert (status["topic"], status["landed_up_to"], status["lag_records"]) == (landed, TEN, 7)
        assert (status["dead_letters"], status["last_error"]) == (0, None)

    @pytest.mark.slow("lands two hours for one line of output")
    def test_index_show_says_that_nothing_is_landed_yet(self, run: Run, lake: Lake, tmp_path: Path) -> None:
        path = tmp_path / "s3lake.yaml"
        path.write_text(lake.config_text(f"name: events, topics: ['{lake.topic()}']"))
        assert re.fullmatch(r"events: \S+: nothing is landed yet\n", run("index", "show", path).out)

    @pytest.mark.slow("lands two hours for one line of output")
    def test_index_show_as_json_has_every_interval(self, run: Run, config: Path) -> None:
        rows = run("index", "show", config, "--json").rows
        assert [row["hour"] for row in rows] == [START, TEN]
        assert rows[1]["offsets"] == {"0": [20, 20, 20], "1": [0, 11, 11]}
        assert rows[1]["pending"] is None
        assert [(row["state"], row["sealed_up_to"]) for row in rows] == [("sealed", START)] * 2

    @pytest.mark.slow("lands two hours for one line of output")
    def test_index_accept_refuses_a_topic_that_is_the_same(self, run: Run, config: Path, landed: str) -> None:
        outcome = run("index", "accept", "--topic", landed, config, "--yes")
        assert outcome.code == 2
        assert "there is nothing to accept" in outcome.err

    def test_index_accept_goes_on_with_a_topic_that_was_created_again(
        self, run: Run, config: Path, landed: str, lake: Lake
    ) -> None:
        lake.delete(landed)
        lake.topic(name=landed)
        outcome = run("index", "accept", "--topic", landed, config, "--yes")
        assert outcome.code == 0
        assert outcome.out.strip() == f"events {landed} hours of the present topic begin at {hours.shift(TEN, 1)}"

    @pytest.mark.slow("lands two hours for one line of output")
    def test_index_accept_passes_over_sinks_that_have_nothing_to_accept_as_after_one_that_was_interrupted(
        self, run: Run, landed: str, lake: Lake, tmp_path: Path
    ) -> None:
        path = tmp_path / "s3lake.yaml"
        topics = f"topics: ['{landed}'], errors: {{tolerance: all}}"
        path.write_text(lake.config_text(f"name: copies, prefix: copies, {topics}", f"name: events, {topics}"))
        lake.delete(landed)
        lake.topic(name=landed)

        outcome = run("index", "accept", "--topic", landed, path, "--yes")
        assert outcome.code == 0, outcome.err
        assert outcome.out.splitlines() == [
            f"events {landed} hours of the present topic begin at {hours.shift(TEN, 1)}",
            f"copies: topic '{landed}' has no index yet: there is nothing to accept",
        ]
        again = run("index", "accept", "--topic", landed, path, "--yes")
        assert again.code == 2
        assert f"topic '{landed}' has no index yet: there is nothing to accept" in again.err

    @pytest.mark.slow("lands two hours for one line of output")
    def test_land_begins_where_the_present_topic_does(self, run: Run, config: Path, landed: str, lake: Lake) -> None:
        lake.delete(landed)
        lake.topic(name=landed)
        run("index", "accept", "--topic", landed, config, "--yes")
        first = hours.shift(TEN, 1)
        lake.produce(landed, values(5), at(first, 5), 0)

        outcome = run("land", config, "--to", first)
        assert outcome.code == 0, outcome.err
        assert outcome.out.startswith(f"events {landed} {first}: 5 offsets = 5 rows; 1 data files")
        refused = run("land", config, "--from", START, "--to", first)
        assert refused.code == 3
        assert f"the hours to land begin at {first}" in refused.err

    @pytest.mark.slow("lands two hours for one line of output")
    def test_index_rollback_refuses_an_hour_without_a_pending_commit(self, run: Run, config: Path, landed: str) -> None:
        outcome = run("index", "rollback", "--sink", "events", "--topic", landed, "--hour", TEN, config, "--yes")
        assert outcome.code == 2
        assert f"{landed} {TEN} has no pending commit: there is nothing to roll back" in outcome.err

    def test_index_rollback_gives_up_what_is_pending(self, run: Run, config: Path, landed: str, lake: Lake) -> None:
        index = lake.landing(landed).index
        found = index.tile(TEN)
        assert found is not None
        index.record(Manifest("stuck", landed, TEN, {0: Read(0, 3)}))
        assert index.swap_tile(found[0].changed(pending="stuck"), found[1])

        outcome = run("index", "rollback", "--sink", "events", "--topic", landed, "--hour", TEN, config, "--yes")
        assert outcome.code == 0
        assert outcome.out.strip() == (
            f"events {landed} {TEN}: commit stuck is rolled back; the next run reads its 3 offsets again, 0 of them "
            "have expired"
        )
        after = index.tile(TEN)
        assert after is not None
        assert (after[0].pending, after[0].garbage) == (None, ())

    def test_land_lands_the_hours_that_are_not_complete_and_prints_each(
        self, run: Run, config: Path, landed: str, lake: Lake
    ) -> None:
        eleven = hours.shift(TEN, 1)
        lake.produce(landed, values(7), at(eleven, 5), 0)
        outcome = run("land", config, "--to", hours.shift(TEN, 2))
        assert outcome.code == 0, outcome.err
        assert f"events {landed} {eleven}: 7 offsets = 7 rows; 1 data files" in outcome.out
        assert START not in outcome.out
        assert run("verify", config, "--to", eleven).code == 0
        again = run("land", config, "--from", START, "--to", hours.shift(TEN, 1))
        assert (again.code, again.out) == (0, "nothing to land: every hour of this range is complete\n")

    @pytest.mark.slow("lands two hours for one line of output")
    def test_land_goes_on_after_a_topic_that_fails(self, run: Run, config: Path, landed: str, lake: Lake) -> None:
        eleven = hours.shift(TEN, 1)
        broken = lake.topic(partitions=1)
        lake.produce(broken, [b"{ broken"], at(eleven, 5), 0)
        lake.produce(landed, values(7), at(eleven, 5), 0)
        config.write_text(lake.config_text(f"name: events, topics: ['{broken}', '{landed}']"))
        outcome = run("land", config, "--from", eleven, "--to", eleven)
        assert outcome.code == 3
        assert f"events {landed} {eleven}: 7 offsets = 7 rows" in outcome.out
        assert f"\nevents {broken}: RecordError: " in outcome.err
        assert f"land events {landed}: offsets: 7 of 7" in outcome.err.splitlines()

    def test_rewrite_replaces_the_files_of_the_hours(self, run: Run, config: Path, landed: str, lake: Lake) -> None:
        before = lake.objects()
        outcome = run("rewrite", config, "--from", TEN, "--to", TEN, "--yes")
        assert outcome.code == 0
        assert outcome.out.startswith(f"events {landed} {TEN}: 11 offsets = 10 rows + 1 dead letters; 1 data files ")
        assert len(set(before) & set(lake.objects())) == 1
        assert run("verify", config, "--from", TEN, "--to", TEN).code == 0

    @pytest.mark.slow("lands two hours for one line of output")
    def test_rewrite_goes_on_after_a_topic_whose_hour_is_not_landed(
        self, run: Run, config: Path, landed: str, lake: Lake
    ) -> None:
        other = lake.topic(partitions=1)
        config.write_text(
            lake.config_text(f"name: events, topics: ['{other}', '{landed}'], errors: {{tolerance: all}}")
        )
        outcome = run("rewrite", config, "--from", TEN, "--to", TEN, "--yes")
        assert outcome.code == 3
        assert outcome.out.startswith(f"events {landed} {TEN}: 11 offsets = 10 rows + 1 dead letters; 1 data files ")
        assert f"{other} {TEN} is not landed as a whole: materialise it before rewriting it" in outcome.err

    @pytest.mark.slow("lands two hours for one line of output")
    def test_rewrite_of_an_hour_that_is_not_landed_is_input_that_cannot_be(self, run: Run, config: Path) -> None:
        last = hours.key_of_ms(int(time.time() * 1000))
        outcome = run("rewrite", config, "--from", last, "--to", last)
        assert outcome.code == 2
        assert "is not landed as a whole: materialise it before rewriting it" in outcome.err

    def test_clean_removes_with_yes_what_a_crashed_writer_left(
        self, run: Run, config: Path, landed: str, lake: Lake
    ) -> None:
        index = lake.landing(landed).index
        upload = lake.store.create_upload("left-behind", {"s3lake-commit": "dead"})
        etag = lake.store.upload_part("left-behind", upload, 1, b"x")
        file = File("left-behind", upload, (etag,), 0, 0, 9, 10, 1)
        two_days_ago = int(time.time() * 1000) - 2 * 86_400_000
        manifest = Manifest("dead", landed, TEN, {0: Read(0, 10)}, (file,), created_ms=two_days_ago)
        lake.store.put(index.manifest_key(TEN, "dead"), msgspec.json.encode(manifest))

        dry = run("clean", config)
        assert dry.out.splitlines() == [
            f"events {landed} would be removed: {TEN}, commit dead: fence and sweep, 1 files",
            "nothing is changed yet: --yes does it",
        ]
        assert lake.uploads() == ["left-behind"]
        (row,) = run("clean", config, "--yes", "--json").rows
        assert (row["commit"], row["files"], row["action"], row["done"]) == ("dead", 1, "fence and sweep", True)
        assert lake.uploads() == []
        assert run("clean", config, "--yes").out == "nothing to remove\n"
        assert run("verify", config, "--from", TEN, "--to", TEN).code == 0


@pytest.mark.usefixtures("jvm")
def test_demo_lands_and_verifies_everything_and_leaves_no_process() -> None:
    mark = str(uuid.uuid4())
    done = subprocess.run(
        [Path(sys.executable).parent / "s3lake", "demo", "--records", "2000"],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, MARK: mark},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    produced, compared = "produced 2,000 committed records, ", "compared 2,000 records of Kafka: "
    lines = done.stdout.splitlines()
    assert lines[0] == "starting Kafka and S3 on this machine"
    assert [line for line in lines if line.startswith(produced)]
    begun = next(at for at, line in enumerate(lines) if line.startswith("backfilling "))
    assert "planned" in lines[begun + 1], "something is said before all of it is done"
    (total,) = [line for line in lines if line.startswith(compared)]
    figures = re.fullmatch(rf"{compared}([\d,]+) landed, (\d+) dead letters, in (\d+) data files.*", total)
    assert figures, total
    assert total.endswith("; not landed 0, missing 0, duplicated 0")
    assert int(figures[1].replace(",", "")) + int(figures[2]) == 2000
    assert lines[-2].startswith("next: s3lake demo --serve")
    sums = [
        re.fullmatch(r"\S+ \w+ \S+: ([\d,]+) offsets = ([^;]+); ([\d,]+) data files.*", line)
        for line in lines
        if " offsets = " in line
    ]
    assert len(sums) >= 8
    for found in sums:
        assert found
        parts = [int(part.split()[0].replace(",", "")) for part in found[2].split(" + ")]
        assert sum(parts) == int(found[1].replace(",", ""))
    assert sum(int(found[3]) for found in sums if found) == int(figures[3])
    _, alive = psutil.wait_procs(marked(mark), timeout=10)
    assert alive == []


@pytest.mark.usefixtures("jvm")
@pytest.mark.slow("the demo on a terminal; the demo itself is always run")
def test_demo_on_a_terminal_shows_where_everything_is_and_overwrites_none_of_it(tmp_path: Path) -> None:
    mark, seen = str(uuid.uuid4()), b""
    ours, theirs = pty.openpty()
    command = [Path(sys.executable).parent / "s3lake", "demo", "--records", "500", "--serve"]
    environment = {**os.environ, MARK: mark, "TERM": "xterm", "COLUMNS": "400"}
    demo = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=tmp_path)
    os.close(theirs)
    deadline = time.monotonic() + 280
    while b"Ctrl-C ends" not in seen and time.monotonic() < deadline:
        if select.select([ours], [], [], 1)[0]:
            seen += os.read(ours, 65536)
    demo.send_signal(signal.SIGINT)
    code = None
    with contextlib.suppress(OSError):  # the terminal is gone with its last process
        while code is None and time.monotonic() < deadline:
            code = demo.poll()
            if select.select([ours], [], [], 0.5)[0]:
                seen += os.read(ours, 65536)
    assert demo.wait(30) == 0
    os.close(ours)
    text = seen.decode()
    first = re.search(r"Dagster's UI will be at (http://127\.0\.0\.1:\d+)", text)
    assert first, "it is told before anything else is done"
    assert f"ui: {first[1]} " in text
    shown = text[text.index("ui: http://127.0.0.1:") :]
    # Nothing goes back over a line, or erases one, from here on.
    assert not re.search(r"\x1b\[\d*[AFJK]", shown), shown[-500:]
    for line in (
        "kafka: 127.0.0.1:",
        "s3: http://127.0.0.1:",
        "s3 credentials: s3lake-demo ",
        "duckdb -c ",
        "Ctrl-C ends",
    ):
        assert line in shown
    _, alive = psutil.wait_procs(marked(mark), timeout=10)
    assert alive == []
