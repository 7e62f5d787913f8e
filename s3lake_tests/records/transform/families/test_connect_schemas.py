"""Random records with schemas through Kafka Connect's own transforms: value and schema are what ours make of them.

What ours do otherwise on purpose is listed in docs/transforms.md.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import pytest

from s3lake_tests.kit.connect_records import (
    Answer,
    Connect,
    ConnectRecord,
    ConnectValue,
    Dropped,
    Limits,
    Refused,
    Step,
    random_cases,
    start_connect,
)
from s3lake_tests.records.transform.families.connect_values import describe_column, read_connect_value
from s3lake_tests.records.transform.kit import Message, chain, run, smt

pytestmark = pytest.mark.usefixtures("jvm")

STRICTER = re.compile(
    r"which (int8|int16|int32|int64|float32|float64|date|time|timestamp) cannot hold"  # Java wraps round
    r"|has no date"  # beyond the year 9999
    r"|cannot be masked|takes no replacement|replacement is not|is not$"
    r"|is in the schema already|two fields would be called"
)
"""Why ours refuse a record that Connect takes."""
_TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
_LIMITS = Limits(defaults=False, scales=(0, 2, 5), roots=("struct", "struct", "struct", "struct", "int64", "string"))


def random_steps(random: Random, case: ConnectValue) -> list[Step]:
    """Return one to three transforms, mostly of fields that the schema has."""
    assert case.schema is not None
    fields = [one["field"] for one in case.schema.get("fields", ())] or ["a"]

    def name() -> str:
        return random.choice(fields) if random.random() < 0.9 else "absent"

    steps: dict[str, Any] = {
        "Cast$Value": lambda: {"spec": f"{name()}:{random.choice(_TYPES)}"},
        "ExtractField$Value": lambda: {"field": name()},
        "Flatten$Value": lambda: {"delimiter": random.choice("._")},
        "HoistField$Value": lambda: {"field": "h"},
        "InsertField$Value": lambda: {
            "offset.field": random.choice(("o", "o!", "o?")),
            "timestamp.field": "ts",
            "partition.field": "p",
            "topic.field": "t",
            "static.field": "s",
            "static.value": "x",
        },
        "MaskField$Value": lambda: {"fields": name()} | ({"replacement": "7"} if random.random() < 0.3 else {}),
        "ReplaceField$Value": lambda: random.choice(
            ({"exclude": name()}, {"include": name()}, {"renames": f"{name()}:new"})
        ),
        "SetSchemaMetadata$Value": lambda: {"schema.name": "com.acme.New", "schema.version": "7"},
        "TimestampConverter$Value": lambda: {
            "field": name(),
            "target.type": random.choice(("string", "unix", "Date", "Time", "Timestamp")),
            "format": "yyyy-MM-dd HH:mm:ss.SSS",
        },
        "ValueToKey": lambda: {"fields": name()},
    }
    chosen = random.choices(list(steps), k=random.choice((1, 1, 2, 3)))
    return [(one, steps[one]()) for one in chosen if all(":" not in part and "," not in part for part in fields)]


def compare(cases: Sequence[ConnectValue], seed: int, connect: Connect) -> Counter[str]:
    """Compare each case behind a random chain. Return how many were compared, and how many each side refused."""
    random = Random(seed)
    chains = [random_steps(random, case) for case in cases]
    answers = connect.transform([(ConnectRecord(case.text), steps) for case, steps in zip(cases, chains, strict=True)])
    counts = Counter[str]()
    for case, steps, answer in zip(cases, chains, answers, strict=True):
        counts[compare_one(case, steps, answer)] += 1
    return counts


def compare_one(case: ConnectValue, steps: Sequence[Step], answer: Answer) -> str:
    links = chain(*(smt(name, dict(options)) for name, options in steps), key="string", value="connect_json")
    done = run(links, Message(case.text, key=None, offset=100))
    what = (case.text, steps, answer)
    if done.refused:
        if isinstance(answer, Refused):
            return "refused by both"
        assert STRICTER.search(done.refused[0]), (done.refused, what)
        return "refused by ours"
    if isinstance(answer, Refused):
        assert KINDER.search(answer.reason), what
        return "refused by Connect"
    assert not isinstance(answer, Dropped)
    if b'"fields":[]' in (answer.value or b"") + (answer.key or b""):
        return "without fields"
    for side, text in (("value", answer.value), ("key", answer.key)):
        if side in done.columns:
            column, refused = done.columns[side].finish(texts=False)
            assert refused == {}
            assert describe_column(column) == read_connect_value(text), (side, what)
    return "compared"


KINDER = re.compile(
    r"does not correspond to a known timestamp type"  # ours take int32 too
    r"|Cannot list fields on non-struct type"  # a schema's name is set, or null converted, that is of no struct
    r"|Flatten transformation does not support MAP"  # ours leave a map as it is
    r"|null value for field that is required"  # a field of null is null
    r"|null used for required field"  # the same, hoisted
    r"|is not a valid field name"  # ReplaceField renames what an earlier one has renamed
    r"|mismatching scale"  # a masked decimal has its scale
)
"""Why Connect refuses a record that ours take."""


@pytest.fixture(scope="module")
def connect() -> Iterator[Connect]:
    with start_connect() as connect:
        yield connect


def test_some_records_and_their_schemas_are_what_connect_makes_of_them(connect: Connect) -> None:
    counts = compare(list(random_cases(1, 50, _LIMITS)), 1, connect)
    print(counts)
    assert counts["compared"] > 20


@pytest.mark.slow("5,000 random records; `make test` compares 50")
def test_records_and_their_schemas_are_what_connect_makes_of_them(connect: Connect) -> None:
    counts = compare(list(random_cases(2, 5_000, _LIMITS)), 2, connect)
    print(counts)
    assert counts["compared"] > 2_000
