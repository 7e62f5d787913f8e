"""Random records through the transforms of Iceberg's own sink: value and schema are what ours make of them."""

import re
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from s3lake_tests.kit.connect_messages import connect_message
from s3lake_tests.kit.connect_records import (
    Answer,
    Connect,
    ConnectRecord,
    Refused,
    Step,
    random_schema,
    random_value,
    start_connect,
)
from s3lake_tests.records.transform.families.connect_values import describe_column, read_connect_value
from s3lake_tests.records.transform.families.random_debezium_events import ROWS, random_event
from s3lake_tests.records.transform.kit import TOPIC, Message, chain, run, smt

pytestmark = [
    pytest.mark.usefixtures("jvm"),
    pytest.mark.slow("an oracle; test_iceberg.py has a record of each kind"),
]

JAR = "org.apache.iceberg:iceberg-kafka-connect-transforms:1.10.0"
PACKAGE = "org.apache.iceberg.connect.transforms."
STRICTER = re.compile("the schema already")


def random_case(random: Random, number: int) -> tuple[ConnectRecord, Step]:
    """Return a record and a transform, whose options no other case has: Iceberg's share them."""
    row = random_schema(random, ROWS) | {"name": "srv.db.t.Value", "optional": True}
    key = connect_message({"type": "struct", "fields": [{"field": "k", "type": "int32"}]}, {"k": 1})
    record = ConnectRecord(random_event(random, row), key=key if random.random() < 0.8 else None, topic=TOPIC)
    name = random.choice(("DebeziumTransform", "DebeziumTransform", "KafkaMetadataTransform", "CopyValue"))
    if name == "DebeziumTransform":
        pattern = {"cdc.target.pattern": f"x{number}.{{db}}_{{table}}"} if random.random() < 0.5 else {}
        return record, (PACKAGE + name, pattern)
    value = connect_message(row, random_value(random, row | {"optional": random.random() < 0.1}))
    if name == "CopyValue":
        source = random.choice([*(one["field"] for one in row["fields"]), "absent"])
        options = {"source.field": source, "target.field": random.choice((f"n{number}", "a"))}
    else:
        options = {"field_name": f"m{number}", "nested": random.choice(("true", "false"))}
        options |= {"external_field": f"c,eu{number}"} if random.random() < 0.5 else {}
    return ConnectRecord(value, key=record.key, topic=TOPIC), (PACKAGE + name, options)


def compare_one(record: ConnectRecord, step: Step, answer: Answer) -> str:
    links = chain(smt(step[0], dict(step[1])), key="connect_json", value="connect_json")
    done = run(links, Message(record.value, record.key))
    what = (record, step, answer, done.refused)
    if done.refused:
        assert isinstance(answer, Refused) or STRICTER.search(done.refused[0]), what
        return "refused by both" if isinstance(answer, Refused) else "refused by ours"
    assert isinstance(answer, ConnectRecord), what
    assert done.rows.to_pylist() == [0], what
    if "value" in done.columns:
        column, refused = done.columns["value"].finish(texts=False)
        assert refused == {}
        assert describe_column(column) == read_connect_value(answer.value), what
    else:
        assert read_connect_value(answer.value)[1] is None, what
    return "compared"


@pytest.fixture(scope="module")
def connect() -> Iterator[Connect]:
    """Iceberg's classes next to Connect's."""
    with start_connect(JAR) as connect:
        yield connect


def test_records_become_what_iceberg_makes_of_them(connect: Connect) -> None:
    random = Random(1)
    cases = [random_case(random, number) for number in range(1_000)]
    answers = connect.transform([(record, [step]) for record, step in cases])
    counts = Counter(compare_one(*case, answer) for case, answer in zip(cases, answers, strict=True))
    print(counts)
    assert counts["compared"] > 500
