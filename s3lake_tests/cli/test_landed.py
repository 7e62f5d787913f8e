"""Commands on two landed hours of real parts: verify, status, index, land, rewrite, clean."""

from pathlib import Path

import pytest

from s3lake import hours
from s3lake.land.hour.landing import land
from s3lake_tests.kit.console import Run
from s3lake_tests.kit.lake import START, Lake, at, values

TEN = "2026-01-05T10"


class TestOnLandedHours:
    """Two hours of two topic-partitions, of a sink with one dead letter."""

    @pytest.fixture
    def landed(self, lake: Lake) -> str:
        topic = lake.topic(partitions=2)
        lake.produce(topic, values(20), at(START, 5), 0)
        lake.produce(topic, [*values(10), b"{ broken"], at(TEN, 5), 1)
        land(lake.target(topic, "errors: {tolerance: all}", at("2026-01-06T00")), [START, TEN])
        return topic

    @pytest.fixture
    def config(self, lake: Lake, landed: str, tmp_path: Path) -> Path:
        path = tmp_path / "s3lake.yaml"
        path.write_text(lake.config_text(f"name: events, topics: ['{landed}'], errors: {{tolerance: all}}"))
        return path

    def test_verify_compares_all_hours_or_some_and_names_the_one_without_a_tile(
        self, run: Run, config: Path, landed: str
    ) -> None:
        outcome = run("verify", config, "--to", TEN)
        assert outcome.code == 1
        assert f"not landed: {landed} 2026-01-05T09: 0 offsets, no tile" in outcome.out.splitlines()
        assert outcome.out.splitlines()[-1] == (
            "compared 31 records of Kafka: 30 landed, 1 dead letter, in 2 data files and 1 dead-letter file; "
            "not landed 0, missing 0, duplicated 0"
        )
        rows = [row for row in run("verify", config, "--to", TEN, "--json").rows if "kafka_records" in row]
        assert {(row["topic"], row["hour"], row["partition"]) for row in rows} >= {(landed, START, 0), (landed, TEN, 1)}
        outcome = run("verify", config, "--from", TEN, "--to", TEN, "--quiet")
        (total,) = outcome.out.splitlines()
        assert (outcome.code, total.partition(":")[0]) == (0, "compared 11 records of Kafka")
        assert outcome.err.splitlines().count("verify: offsets compared: 11 of 11") == 1
        outcome = run("verify", config, "--from", "2025-01-01T00", "--to", "2025-01-01T05")
        assert outcome.code == 2
        assert f"no sink has an hour in this range: they begin events at {START}" in outcome.err

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

    def test_verify_finds_what_is_missing(self, run: Run, config: Path, landed: str, lake: Lake) -> None:
        lake.store.delete(next(key for key in lake.objects() if key.startswith(f"{landed}/date=") and "/0-" in key))
        outcome = run("verify", config, "--to", TEN)
        assert outcome.code == 1
        assert "missing 20, duplicated 0" in outcome.out
        assert any(line.startswith("object: ") for line in outcome.out.splitlines())

    def test_index_accept_continues_with_a_topic_that_was_created_again(
        self, run: Run, config: Path, landed: str, lake: Lake
    ) -> None:
        outcome = run("index", "accept", "--topic", landed, config, "--yes")
        assert outcome.code == 2
        assert "there is nothing to accept" in outcome.err
        lake.delete(landed)
        lake.topic(name=landed)
        outcome = run("index", "accept", "--topic", landed, config, "--yes")
        first = hours.shift(TEN, 1)
        assert (outcome.code, outcome.out) == (0, f"events {landed} hours of the present topic begin at {first}\n")
        lake.produce(landed, values(5), at(first, 5), 0)
        outcome = run("land", config, "--to", first)
        assert outcome.code == 0, outcome.err
        assert outcome.out.startswith(f"events {landed} {first}: 5 offsets = 5 rows; 1 data file,")
        refused = run("land", config, "--from", START, "--to", first)
        assert refused.code == 3
        assert f"the hours to land begin at {first}" in refused.err

    def test_land_lands_the_hours_that_are_not_complete_and_prints_each(
        self, run: Run, config: Path, landed: str, lake: Lake
    ) -> None:
        eleven = hours.shift(TEN, 1)
        lake.produce(landed, values(7), at(eleven, 5), 0)
        outcome = run("land", config, "--to", hours.shift(TEN, 2))
        assert outcome.code == 0, outcome.err
        assert f"events {landed} {eleven}: 7 offsets = 7 rows; 1 data file," in outcome.out
        assert START not in outcome.out
        assert run("verify", config, "--to", eleven).code == 0
        again = run("land", config, "--from", START, "--to", hours.shift(TEN, 1))
        assert (again.code, again.out) == (0, "nothing to land: every hour of this range is complete\n")

    def test_rewrite_replaces_the_files_of_the_hours(self, run: Run, config: Path, landed: str, lake: Lake) -> None:
        before = lake.objects()
        outcome = run("rewrite", config, "--from", TEN, "--to", TEN, "--yes")
        assert outcome.code == 0
        assert outcome.out.startswith(f"events {landed} {TEN}: 11 offsets = 10 rows + 1 dead letter; 1 data file ")
        assert len(set(before) & set(lake.objects())) == 1
        assert run("verify", config, "--from", TEN, "--to", TEN).code == 0
