"""KCQL: the vectors of the reference in strict mode, places, and a parser that never fails otherwise."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.config.connectors.lenses_kcql import CLAUSES, KcqlError, Statement, parse_kcql
from s3lake_tests.kit.cost import cpu_ratio

START = "INSERT INTO b:p SELECT * FROM t "


def one(text: str) -> Statement:
    (statement,) = parse_kcql(text)
    return statement


def refused(text: str) -> KcqlError:
    with pytest.raises(KcqlError) as error:
        parse_kcql(text)
    return error.value


# KCQL of the connector's tests, and what its parser made of others


@pytest.mark.parametrize("between", [";", "; ", ";\n", " ;; \n"])
def test_v2_statements_are_separated_by_semicolons_and_keep_their_order(between: str) -> None:
    text = between.join(f"INSERT INTO b SELECT * FROM t{at}" for at in range(6)) + between
    assert [found.topic for found in parse_kcql(text)] == [f"t{at}" for at in range(6)]
    assert parse_kcql("") == ()


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("INSERT INTO testbucket:pathToWriteTo SELECT * FROM topicA;", ("testbucket", "pathToWriteTo", "topicA")),
        ("INSERT INTO `bucket-name`:`prefix` SELECT * FROM `kafka-topic`", ("bucket-name", "prefix", "kafka-topic")),
        ("insert into $target select * from `*`", ("$target", "", "*")),
        ("INSERT INTO `limit` SELECT * FROM `batch`", ("limit", "", "batch")),
    ],
)
def test_v1_v5_v22_v23_v25_v28_names_of_buckets_and_topics(text: str, target: tuple[str, str, str]) -> None:
    found = one(text)
    assert (found.bucket, found.prefix, found.topic) == target


@pytest.mark.parametrize(
    ("written", "elements"),
    [
        ("`a.b`", (("a.b",),)),
        ("(a, b)", (("a",), ("b",))),
        (
            "_header.cost.centre.id,_header.`cost.centre.id`",
            (("_header", "cost", "centre", "id"), ("_header", "cost.centre.id")),
        ),
        ("_value.`a`.`b`", (("_value", "a", "b"),)),
        ("_date.`yyyy-MM-dd`", (("_date", "yyyy-MM-dd"),)),
    ],
)
def test_v7_v8_v11_v29_elements_are_paths_of_names(written: str, elements: tuple[tuple[str, ...], ...]) -> None:
    assert one(START + f"PARTITIONBY {written}").partition_by == elements


@pytest.mark.parametrize("elements", ["my-field", "a,", "", "a b", "(a, b", "()", "a..b", ".a", "`", "``"])
def test_v8_what_is_not_a_list_of_elements_is_refused(elements: str) -> None:
    assert refused(START + f"PARTITIONBY {elements}").offset > len(START)


@pytest.mark.parametrize(
    "value", ["'1'", "'0'", "'x'", "'-'", "'12'", "' '", "1", "12", "-1", "1.5", "a-b/c", '"x"', "''"]
)
def test_a_property_has_its_value_without_the_quotes_v17_v19(value: str) -> None:
    assert one(START + f"PROPERTIES('a.b'={value})").properties["a.b"].value == value.strip("'\"")
    assert one(START + "PROPERTIES('a'='it''s')").properties["a"].value == "it's"


@pytest.mark.parametrize(
    ("columns", "where"),
    [
        ("a, b.c AS d, extract(hour from ts), 'x;y'", "a > 1 AND (x = 'PARTITIONBY' OR y IN (1, 2))"),
        ("`from`, concat('FROM ', name)", '`where` = "a;b"'),
        ("count_from, fromage", "storeasy = 1"),
        ("(a + b) * 2 total", "(partitionby > 1)"),
        (f"'{'(' * 40}' AS a", f"{'(' * 500}a{')' * 500}"),
    ],
)
def test_v32_sql_is_carried_as_it_is_written(columns: str, where: str) -> None:
    found = one(f"INSERT INTO b SELECT  {columns}  FROM t WHERE  {where}  STOREAS CSV; ")
    assert (found.columns, found.where, found.format) == (columns, where, "CSV")


def test_a_statement_has_its_clauses_with_their_offsets() -> None:
    text = "INSERT INTO b:p\n SELECT a FROM `t`\n WHERE a > 1 PARTITIONBY _value.ts STOREAS `CSV` "
    text += "PROPERTIES('flush.count'=1, 'flush.size'=1000000,)"
    found = one(text)
    assert (found.partition_by, found.format, found.partitioned) == ((("_value", "ts"),), "CSV", True)
    assert {name: held.value for name, held in found.properties.items()} == {
        "flush.count": "1",
        "flush.size": "1000000",
    }
    assert {part: text[offset:].split()[0] for part, offset in found.offsets.items()} == {
        "target": "b:p",
        "columns": "a",
        "topic": "`t`",
        "where": "WHERE",
        "partition_by": "PARTITIONBY",
        "format": "STOREAS",
    }
    assert text[found.properties["flush.count"].offset :].startswith("'flush.count'")
    plain = one(START + "NOPARTITION STOREAS CSV")
    assert (plain.columns, plain.where, plain.partitioned) == (None, None, False)


# `broken/lenses.txt` has what is refused, with places and words


@pytest.mark.parametrize("rest", ["(", "''", "a, ", "`a"])
def test_the_time_for_a_text_grows_with_its_length_and_not_with_its_square(rest: str) -> None:
    def refuse(count: int) -> None:
        refused(f"INSERT INTO b SELECT {rest * count}'")

    assert cpu_ratio(lambda: refuse(20_000), lambda: refuse(5_000), enough=8) <= 8  # the square would be 16


# Fuzz

NAMES = ["b", "b:p", "topic", "a.b", "`x.y`", "`*`", "_value.f", "_date.`yyyy`", "JSON", "LIMIT", "UPSERT", "$", "é"]
MARKS = ["*", ",", ";", "(", ")", "=", ".", "'", '"', "`", "'flush.count'", "1", "'1'", "--", "\\", "\n", "%", "&"]
WORDS = st.sampled_from([*CLAUSES, *NAMES, *MARKS])
NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: not re.fullmatch("|".join([*CLAUSES, "LIMIT", "BATCH"]), name, re.I)
)
QUOTED = st.text(st.characters(exclude_characters="`", exclude_categories=("Cs", "Cc")), min_size=1, max_size=8).filter(
    lambda name: name.strip() != ""
)
PART = st.one_of(NAME.map(lambda name: (name, name)), QUOTED.map(lambda name: (name, f"`{name}`")))
VALUE = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)


@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=25).map(" ".join)))
def test_any_text_gives_statements_or_an_error_with_an_offset(text: str) -> None:
    try:
        parse_kcql(text)
    except KcqlError as error:
        offset, message = error.offset, str(error)
    else:
        return
    assert 0 <= offset <= len(text)
    assert message


@given(
    bucket=NAME,
    topic=QUOTED,
    elements=st.lists(st.lists(PART, min_size=1, max_size=3), max_size=3),
    properties=st.dictionaries(NAME.map(str.lower), VALUE, max_size=3),
    rest=st.booleans(),
)
def test_a_statement_is_read_as_it_was_written(
    bucket: str, topic: str, elements: list[list[tuple[str, str]]], properties: dict[str, str], rest: bool
) -> None:
    paths = [tuple(name for name, _ in element) for element in elements]
    if len({tuple(name.lower() for name in path) for path in paths}) < len(paths):
        return
    listed = ", ".join(".".join(names for _, names in element) for element in elements)
    pairs = ", ".join(f"'{name}'='" + value.replace("'", "''") + "'" for name, value in properties.items())
    text = f"INSERT INTO {bucket} SELECT * FROM `{topic}`"
    text += f" PARTITIONBY {listed}" if elements else ""
    text += f" PROPERTIES({pairs})" if properties or rest else ""
    found = one(text)
    assert (found.bucket, found.topic, found.partition_by) == (bucket, topic, tuple(paths))
    assert {name: held.value for name, held in found.properties.items()} == properties
