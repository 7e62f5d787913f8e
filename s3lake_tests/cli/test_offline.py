"""Commands that need neither Kafka nor S3: preview, test, convert, init."""

import io
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from s3lake import hours
from s3lake.config import load as configuration
from s3lake_tests.kit.console import Outcome, Run
from s3lake_tests.kit.lake import NOBODY, START


class TestPreview:
    def preview(self, run: Run, config: Path, *values: str, options: tuple[str, ...] = ("--json",)) -> Outcome:
        records = config.parent / "records.jsonl"
        rows = [{"topic": "orders", "value": value, "timestamp": hours.start_ms(START)} for value in values]
        records.write_text("".join(json.dumps(record) + "\n" for record in rows))
        return run("preview", config, "--records", records, *options)

    def test_prints_an_object_a_line(self, run: Run, offline: Path) -> None:
        outcome = self.preview(run, offline, "1", "2")
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

    @pytest.mark.parametrize(
        ("values", "counts"),
        [(("1",), "0 to 0, 1 record, 2 bytes"), (("1", "2"), "0 to 1, 2 records, 4 bytes")],
    )
    def test_a_line_counts_records_and_bytes(
        self, run: Run, offline: Path, values: tuple[str, ...], counts: str
    ) -> None:
        outcome = self.preview(run, offline, *values, options=())
        assert outcome.code == 0
        assert outcome.out.endswith(f"{counts}\n")

    def test_out_writes_the_objects_below_a_directory(self, run: Run, offline: Path, tmp_path: Path) -> None:
        assert self.preview(run, offline, "1", options=("--out", str(tmp_path / "out"))).code == 0
        assert (
            tmp_path / "out" / "orders" / "date=2026-01-05" / "hour=08" / "0-000000000000.json"
        ).read_bytes() == b"1\n"

    def test_out_that_is_not_a_directory_is_refused(self, run: Run, offline: Path) -> None:
        outcome = self.preview(run, offline, "1", options=("--out", str(offline)))
        assert outcome.code == 2
        assert f"--out {offline}: {offline}/orders/" in outcome.err
        assert "cannot be written: Not a directory" in outcome.err

    def test_records_that_are_all_skipped_are_reported(self, run: Run, offline: Path) -> None:
        (offline.parent / "nulls.jsonl").write_text('{"topic": "orders"}\n')
        outcome = run("preview", offline, "--records", offline.parent / "nulls.jsonl")
        assert (outcome.code, outcome.out) == (
            0,
            f"no object: every record of {offline.parent}/nulls.jsonl is skipped\n",
        )

    def test_one_refused_record_is_exit_code_one_and_no_object(self, run: Run, offline: Path) -> None:
        outcome = self.preview(run, offline, "1", "{")
        assert (outcome.code, outcome.out) == (1, "")
        error = json.loads(outcome.err)
        assert (error["offset"], error["stage"]) == (1, "convert")

    def test_dead_letters_are_objects_and_not_a_failure(self, run: Run, offline: Path) -> None:
        offline.write_text(NOBODY.replace("bucket: lake,", "bucket: lake, errors: {tolerance: all},"))
        outcome = self.preview(run, offline, "1", "{")
        assert outcome.code == 0
        assert [row["key"].partition("/")[0] for row in outcome.rows] == ["_dead_letters", "orders"]
        assert json.loads(outcome.err)["offset"] == 1

    def test_no_records_are_nothing_to_preview(self, run: Run, offline: Path) -> None:
        outcome = self.preview(run, offline, options=())
        assert (outcome.code, outcome.out) == (
            0,
            f"nothing to preview: {offline.parent}/records.jsonl has no record\n",
        )


EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


class TestTest:
    """`s3lake test`, with the example of the documentation."""

    @pytest.fixture
    def cases(self, tmp_path: Path) -> Path:
        return Path(shutil.copytree(EXAMPLES / "test", tmp_path / "test"))

    def test_ends_with_0_if_everything_is_as_expected(self, run: Run, cases: Path) -> None:
        outcome = run("test", EXAMPLES / "s3lake.yaml", cases)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.splitlines() == ["ok: broken", "ok: types", "2 compared, all as expected"]

    def test_shows_what_differs_and_ends_with_one(self, run: Run, cases: Path) -> None:
        expected = cases / "types.expected.json"
        expected.write_text(expected.read_text().replace("2.5", "3"))
        outcome = run("test", EXAMPLES / "s3lake.yaml", cases)
        assert outcome.code == 1
        lines = outcome.out.splitlines()
        assert lines[1] == f"differs: types ({expected})"
        assert [line.split() for line in lines if line.strip()[0] in "-+"] == [
            ["-", '"amount":', "3,"],
            ["+", '"amount":', "2.5,"],
        ]
        rows = run("test", EXAMPLES / "s3lake.yaml", cases, "--json").rows
        assert [(row["case"], row["passed"]) for row in rows] == [("broken", True), ("types", False)]

    def test_write_makes_the_results_the_expected_ones(self, run: Run, cases: Path) -> None:
        (cases / "types.expected.json").unlink()
        assert run("test", EXAMPLES / "s3lake.yaml", cases).code == 1
        assert run("test", EXAMPLES / "s3lake.yaml", cases, "--write").code == 0
        assert run("test", EXAMPLES / "s3lake.yaml", cases).code == 0
        written = (cases / "types.expected.json").read_text()
        assert written == (EXAMPLES / "test" / "types.expected.json").read_text()

    def test_notices_of_the_configuration_can_be_expected(self, run: Run, offline: Path, cases: Path) -> None:
        offline.write_text(NOBODY.replace("bucket: lake,", "bucket: lake, exactly_once: false,"))
        run("test", offline, cases, "--write")
        notices = cases / "notices.expected.json"
        assert "exactly_once is off" in notices.read_text()
        notices.write_text("[]")
        outcome = run("test", offline, cases)
        assert outcome.code == 1
        assert "sink events: exactly_once is off" in outcome.out

    def test_an_invalid_expectation_is_exit_code_two(self, run: Run, cases: Path) -> None:
        (cases / "types.expected.json").write_text("{")
        outcome = run("test", EXAMPLES / "s3lake.yaml", cases)
        assert outcome.code == 2
        assert "types.expected.json is not JSON" in outcome.err


class TestConvert:
    def test_prints_native_yaml_with_variables_for_secrets(
        self, run: Run, offline: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        outcome = run("convert", offline)
        assert outcome.code == 0
        assert "hunter2" not in outcome.out + outcome.err
        for variable, secret in (("KAFKA", "hunter2-kafka"), ("S3_CREDENTIALS_SECRET", "hunter2-s3")):
            (name,) = re.findall(rf"\$\{{(S3LAKE_SECRET_{variable}\w*)\}}", outcome.out)
            assert name in outcome.err
            monkeypatch.setenv(name, secret)
        again = tmp_path / "again.yaml"
        again.write_text(outcome.out)
        assert configuration.load(again) == configuration.load(offline)

    def test_options_of_a_forward_that_have_a_secret_become_variables(
        self, run: Run, offline: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        conninfo = "host=db password=hunter2-pg"
        forward = f"{{to: postgres, options: {{conninfo: '{conninfo}', table: lake.orders}}}}"
        offline.write_text(NOBODY.replace("bucket: lake,", f"bucket: lake, forwards: [{forward}],"))
        outcome = run("convert", offline)
        for name in re.findall(r"\$\{(S3LAKE_SECRET_\w+)\}", outcome.out):
            monkeypatch.setenv(name, conninfo if "CONNINFO" in name else "hunter2")
        assert "hunter2" not in outcome.out + outcome.err
        again = tmp_path / "again.yaml"
        again.write_text(outcome.out)
        assert configuration.load(again).sinks[0].forwards == configuration.load(offline).sinks[0].forwards


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
        assert outcome.out.rstrip().endswith("dagster dev -m s3lake.definitions"), "what starts without a project"
        (sink,) = run("check", path, "--json").rows[0]["sinks"]
        assert (sink["topics"], sink["bucket"], sink["prefix"]) == (["orders", "clicks"], "acme-lake", "raw")
        assert (sink["format"]["type"], sink["start"]) == ("avro", "2026-11-20T05")

    def test_an_invalid_answer_writes_nothing(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "first.yaml"
        monkeypatch.setattr(sys, "stdin", io.StringIO("kafka:9092\norders\nNo_Bucket\n\n\n\n\n"))
        outcome = run("init", path)
        assert outcome.code == 2
        assert "a bucket has 3 to 63 of a-z" in outcome.err
        assert not path.exists()

    def test_answers_that_end_too_early_are_exit_code_two(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("kafka:9092\n"))
        outcome = run("init", tmp_path / "first.yaml")
        assert outcome.code == 2
        assert "standard input ended before every question was answered" in outcome.err

    def test_from_converts_the_file_of_a_connector(self, run: Run, tmp_path: Path) -> None:
        path = tmp_path / "first.yaml"
        source = Path(__file__).parents[1] / "config" / "public" / "quickstart.properties"
        assert run("init", path, "--from", source).code == 0
        assert run("check", path, "--json").rows[0]["sinks"][0]["bucket"] == "acme-lake"

    def test_an_existing_file_is_not_overwritten(self, run: Run, offline: Path) -> None:
        outcome = run("init", offline)
        assert outcome.code == 2
        assert f"{offline} exists already" in outcome.err
        assert offline.read_text() == NOBODY

    def test_a_missing_directory_is_named_before_the_questions(self, run: Run, tmp_path: Path) -> None:
        outcome = run("init", tmp_path / "missing" / "first.yaml")
        assert (outcome.code, outcome.out) == (2, "")
        assert f"{tmp_path / 'missing'} is not a directory: create it" in outcome.err
