"""Assertions over a preview: cases of records, and what is expected of them."""

from pathlib import Path
from textwrap import dedent

import pytest

from s3lake.errors import ConfigurationError
from s3lake.land.preview.cases import Case, read
from s3lake.land.preview.trial import Difference, Outcome, differences, tried
from s3lake.sink import Sink

TEN = "2026-11-22T10:15:00Z"
KEY = "orders/date=2026-11-22/hour=10/0-000000000000.json"


def sink(**changes: object) -> Sink:
    fields = {"name": "events", "topics": ("orders",), "bucket": "lake", "start": "2026-11-22T00"}
    return Sink.model_validate({**fields, **changes})


def cases(tmp_path: Path, text: str) -> list[Case]:
    path = tmp_path / "cases.yaml"
    path.write_text(dedent(text))
    return list(read(path).cases)


def case(tmp_path: Path, text: str) -> Case:
    """One case of records of `orders` at ten."""
    (only,) = cases(tmp_path, "cases:\n- name: it lands\n" + dedent(text).replace("\n", "\n  ").rstrip())
    return only


def outcome(tmp_path: Path, records: str, **changes: object) -> Outcome:
    return tried(case(tmp_path, f"\nrecords: {records}"), [sink(**changes)])


RECORD = f"{{topic: orders, value: {{id: 1}}, timestamp: '{TEN}'}}"


class TestOutcome:
    def test_has_keys_and_rows(self, tmp_path: Path) -> None:
        seen = outcome(tmp_path, f"[{RECORD}]")
        assert (seen.keys, seen.rows) == ((KEY,), {KEY: [{"id": 1}]})
        assert (seen.refusals, seen.failed) == ((), False)

    @pytest.mark.parametrize(
        ("written", "rows"),
        [
            ({"type": "json", "codec": "gzip"}, [{"id": 1, "at": "x"}]),
            ({"type": "json_array"}, [{"id": 1, "at": "x"}]),
            ({"type": "csv"}, ["id,at", '1,"x"']),
            ({"type": "avro"}, [{"id": 1, "at": "x"}]),
            ({"type": "parquet", "codec": "zstd"}, [{"id": 1, "at": "x"}]),
        ],
    )
    def test_has_rows_of_every_format(self, written: dict[str, str], rows: list[object], tmp_path: Path) -> None:
        record = f"{{topic: orders, value: {{id: 1, at: x}}, timestamp: '{TEN}'}}"
        assert list(outcome(tmp_path, f"[{record}]", format=written).rows.values()) == [rows]

    def test_shows_instants_decimals_and_bytes_as_text(self, tmp_path: Path) -> None:
        record = f"{{topic: orders, value: {{at: '{TEN}', price: '1.50', raw: AP8=}}, timestamp: '{TEN}'}}"
        columns = {"at": "timestamp", "price": "decimal(10,2)", "raw": "binary"}
        seen = outcome(tmp_path, f"[{record}]", format={"type": "parquet"}, columns=columns)
        (rows,) = seen.rows.values()
        assert rows == [{"at": "2026-11-22T10:15:00+00:00", "price": "1.50", "raw": {"base64": "AP8="}}]

    def test_has_keys_and_rows_of_sidecars_too(self, tmp_path: Path) -> None:
        record = f"{{topic: orders, key: k, value: {{id: 1}}, timestamp: '{TEN}'}}"
        seen = outcome(tmp_path, f"[{record}]", sidecars={"keys": "json"})
        assert seen.rows == {KEY: [{"id": 1}], KEY.replace(".json", ".keys.json"): ["k"]}

    def test_names_refused_records_and_whether_they_fail_the_sink(self, tmp_path: Path) -> None:
        broken = "{topic: orders, value: '{'}"
        tolerant = outcome(tmp_path, f"[{RECORD}, {broken}]", errors={"tolerance": "all"})
        assert [(letter["offset"], letter["stage"]) for letter in tolerant.refusals] == [(1, "convert")]
        assert (tolerant.keys, tolerant.failed) == ((KEY,), False)
        intolerant = outcome(tmp_path, f"[{RECORD}, {broken}]")
        assert (intolerant.keys, intolerant.failed, len(intolerant.refusals)) == ((), True, 1)

    def test_takes_the_newest_record_s_time_for_now(self, tmp_path: Path) -> None:
        layout = {"template": "{time:yyyy-MM-dd HH.mm}/{partition}-{offset}", "time": {"source": "wallclock"}}
        assert outcome(tmp_path, f"[{RECORD}]", layout=layout).keys == ("2026-11-22 10.15/0-0.json",)
        later = case(tmp_path, f"\nnow: 2026-11-23T00:00:00Z\nrecords: [{RECORD}]")
        assert tried(later, [sink(layout=layout)]).keys == ("2026-11-23 00.00/0-0.json",)

    def test_reads_records_from_a_file_beside_the_cases(self, tmp_path: Path) -> None:
        (tmp_path / "records.jsonl").write_text('{"topic": "orders", "value": 7}\n')
        assert list(outcome(tmp_path, "records.jsonl").rows.values()) == [[7]]

    def test_is_of_the_sink_that_is_named_where_several_read_the_topic(self, tmp_path: Path) -> None:
        sinks = [sink(), sink(name="copies", prefix="copies")]
        with pytest.raises(ConfigurationError, match=r"cases\.yaml:2:3: .*sinks events, copies.*sink: NAME"):
            tried(case(tmp_path, f"\nrecords: [{RECORD}]"), sinks)
        named = case(tmp_path, f"\nsink: copies\nrecords: [{RECORD}]")
        assert tried(named, sinks).keys == (f"copies/{KEY}",)
        with pytest.raises(ConfigurationError, match="no sink reads topic 'clicks'"):
            tried(case(tmp_path, "\nrecords: [{topic: clicks}]"), sinks)


class TestDifferences:
    SEEN = Outcome(("a.json", "b.json"), {"a.json": [{"n": 1}], "b.json": [{"n": 2.0}]}, (), False)

    def of(self, tmp_path: Path, expect: str, seen: Outcome = SEEN) -> list[Difference]:
        return differences(case(tmp_path, f"\nrecords: []\nexpect: {expect}").expect, seen)

    @pytest.mark.parametrize(
        "expect",
        [
            "{keys: [b.json, a.json], files: 2, rows: {a.json: [{n: 1}]}, dead_letters: []}",
            "{files: 2}",
            "{rows: {b.json: [{n: 2.0}]}}",
        ],
    )
    def test_are_none_where_all_that_is_named_is_so(self, expect: str, tmp_path: Path) -> None:
        assert self.of(tmp_path, expect) == []

    @pytest.mark.parametrize(
        ("expect", "what", "lines"),
        [
            ("{keys: [a.json, c.json]}", "keys", [" a.json", "-c.json", "+b.json"]),
            ("{files: 3}", "files", ["-3", "+2"]),
            ("{rows: {a.json: [{n: 2}]}}", "rows of a.json", ['-{"n": 2}', '+{"n": 1}']),
            ("{rows: {b.json: [{n: 2}]}}", "rows of b.json", ['-{"n": 2}', '+{"n": 2.0}']),
            ("{rows: {c.json: [1]}}", "rows of c.json", ["-1", "+there is no such object"]),
            ("{dead_letters: [{offset: 1}]}", "dead_letters", ['-{"offset": 1}']),
            ("{failed: true}", "failed", ["-true", "+false"]),
        ],
    )
    def test_are_named_with_what_was_expected_and_what_is(
        self, expect: str, what: str, lines: list[str], tmp_path: Path
    ) -> None:
        (difference,) = self.of(tmp_path, expect)
        assert (difference.what, list(difference.lines())) == (what, lines)

    def test_of_dead_letters_are_those_of_the_members_that_are_named(self, tmp_path: Path) -> None:
        letter = {"topic": "orders", "partition": 0, "offset": 1, "stage": "convert", "message": "no JSON: at byte 7"}
        seen = Outcome((), {}, (letter,), False)
        assert self.of(tmp_path, "{dead_letters: [{offset: 1, message: no JSON}]}", seen) == []
        (difference,) = self.of(tmp_path, "{dead_letters: [{offset: 1, stage: layout}]}", seen)
        assert list(difference.lines()) == [
            '-{"offset": 1, "stage": "layout"}',
            '+{"offset": 1, "stage": "convert"}',
        ]

    def test_of_a_sink_that_failed_is_one_where_nothing_is_said_of_it(self, tmp_path: Path) -> None:
        seen = Outcome((), {}, (), True)
        assert [difference.what for difference in self.of(tmp_path, "{files: 0}", seen)] == ["failed"]

    def test_show_lines_that_begin_as_lines_of_a_diff_do(self) -> None:
        assert list(Difference("rows", ["-- a", "@@ b"], ["++ c"]).lines()) == ["--- a", "-@@ b", "+++ c"]


class TestRead:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("cases: [{name: a, records: [], expect: {kyes: []}}]", "1:41: .*expect.kyes: unknown name; did you mean"),
            ("cases: [{records: []}]", "name: is missing"),
            ("cases: [{name: a, records: 7}]", "records: write a list of records"),
            ("cases: []", "there is no case"),
            ("case: []", "unknown name; did you mean cases"),
            ("cases: [{name: a, records: [{tpoic: x}]}]", r"1:29: .*records\[0\]: an object is needed with topic"),
            ("cases: [{name: a, records: [{topic: x, timestamp: noon}]}]", "timestamp 'noon' is no time"),
            ("cases: [{name: a, records: []}, {name: a, records: []}]", "two cases are called 'a'"),
            ("cases: [", "not YAML"),
            ("[]", "a mapping is needed with cases"),
        ],
    )
    def test_a_mistake_has_its_place(self, text: str, message: str, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match=rf"cases\.yaml:.*{message}"):
            cases(tmp_path, text)
