"""The random records with schemas that oracles compare: they are the same for a seed, and valid for Connect itself."""

import json

import pytest

from s3lake_tests.kit.connect_records import ConnectRecord, Limits, Refused, random_cases, start_connect

COUNT = 300


def test_a_seed_gives_the_same_records() -> None:
    first, second = ([case.text for case in random_cases(7, COUNT)] for _ in range(2))
    assert first == second
    assert len(set(first)) > COUNT * 0.9


def test_limits_choose_the_types_of_whole_values() -> None:
    cases = random_cases(7, COUNT, Limits(roots=("struct",), defaults=False))
    assert {(case.schema or {})["type"] for case in cases} == {"struct"}


@pytest.mark.usefixtures("jvm")
def test_connect_reads_each_record_and_its_transforms_change_them() -> None:
    texts = [case.text for case in random_cases(7, COUNT, Limits(roots=("struct",)))]
    step = ("InsertField$Value", {"offset.field": "at"})
    with start_connect() as connect:
        read = connect.read(texts)
        changed = connect.transform([(ConnectRecord(text), [step]) for text in texts])
        (line,) = connect.write_lines([b'{"schema": {"type": "int8"}, "payload": 7}'])
        (bad,) = connect.read([b'{"schema": {"type": "int7"}, "payload": 7}'])
    assert [answer for answer in read + changed if not isinstance(answer, ConnectRecord)] == []
    values = [json.loads(answer.value or b"") for answer in changed if isinstance(answer, ConnectRecord)]
    assert [
        value["payload"] for value in values if value["payload"] is not None and value["payload"]["at"] != 100
    ] == []
    assert line == ConnectRecord(b"7")
    assert isinstance(bad, Refused)
    assert "Unknown schema type: int7" in bad.reason
