"""KCQL: the vectors of the reference in strict mode, places, and a parser that never falls over."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake.config.connectors.kcql import ORDER, KcqlError, Statement, parse

START = "INSERT INTO b:p SELECT * FROM t "


def one(text: str) -> Statement:
    (statement,) = parse(text)
    return statement


def refused(text: str) -> KcqlError:
    with pytest.raises(KcqlError) as told:
        parse(text)
    return told.value


# Vectors of reference/lenses.md 2.6


def test_v1_a_statement_may_end_in_a_semicolon() -> None:
    found = one("INSERT INTO testbucket:pathToWriteTo SELECT * FROM topicA;")
    assert (found.bucket, found.prefix, found.topic) == ("testbucket", "pathToWriteTo", "topicA")


@pytest.mark.parametrize("between", [";", "; ", ";\n", " ;; \n"])
def test_v2_statements_are_separated_by_semicolons_and_keep_their_order(between: str) -> None:
    text = between.join(f"INSERT INTO b SELECT * FROM t{at}" for at in range(6)) + between
    assert [found.topic for found in parse(text)] == [f"t{at}" for at in range(6)]


def test_v4_clauses_in_order() -> None:
    found = one(
        START + "PARTITIONBY _value.ts STOREAS `JSON` "
        "PROPERTIES ('flush.size'=1000000, 'flush.interval'=30, 'flush.count'=5000)"
    )
    assert found.partition_by == (("_value", "ts"),)
    assert found.format == "JSON"
    properties = {name: held.value for name, held in found.properties.items()}
    assert properties == {"flush.size": "1000000", "flush.interval": "30", "flush.count": "5000"}


def test_v5_backticks_stand_round_parts_of_the_target() -> None:
    found = one("INSERT INTO `bucket-name`:`prefix` SELECT * FROM `kafka-topic`")
    assert (found.bucket, found.prefix, found.topic) == ("bucket-name", "prefix", "kafka-topic")


def test_v7_a_field_in_backticks_is_one_name() -> None:
    assert one(START + "PARTITIONBY `a.b`").partition_by == (("a.b",),)


@pytest.mark.parametrize("elements", ["my-field", "a,", "", "a b", "(a, b", "()", "a..b", ".a", "`", "``"])
def test_v8_what_is_no_list_of_elements_is_refused(elements: str) -> None:
    assert refused(START + f"PARTITIONBY {elements}").line == 1


def test_v8_parentheses_may_stand_round_the_elements() -> None:
    assert one(START + "PARTITIONBY (a, b)").partition_by == (("a",), ("b",))


def test_v10_an_element_stands_there_once() -> None:
    error = refused(START + "PARTITIONBY a, A")
    assert (str(error), error.column) == ("PARTITIONBY names 'A' twice; take one out", 48)


def test_v11_a_path_and_a_name_with_dots_are_two_elements() -> None:
    found = one(START + "PARTITIONBY _header.cost.centre.id,_header.`cost.centre.id`")
    assert found.partition_by == (("_header", "cost", "centre", "id"), ("_header", "cost.centre.id"))


def test_several_parts_of_an_element_may_stand_in_backticks() -> None:
    assert one(START + "PARTITIONBY _value.`a`.`b`").partition_by == (("_value", "a", "b"),)


@pytest.mark.parametrize(
    ("rest", "late"),
    [("STOREAS AVRO PARTITIONBY x", "PARTITIONBY"), ("PROPERTIES('flush.count'=1) STOREAS AVRO", "STOREAS")],
)
def test_v13_v14_a_clause_out_of_order_is_never_lost(rest: str, late: str) -> None:
    message = str(refused(START + rest))
    assert message.startswith(f"unexpected {late!r}; expected ")
    assert f"the order is {ORDER}" in message


def test_v16_a_property_with_a_dot_needs_quotes() -> None:
    assert str(refused(START + "PROPERTIES(flush.count=1)")) == "unexpected '.'; expected '='"


@pytest.mark.parametrize(
    "value", ["'1'", "'0'", "'x'", "'-'", "'12'", "' '", "1", "12", "-1", "1.5", "a-b/c", '"x"', "''"]
)
def test_v17_v19_values(value: str) -> None:
    assert one(START + f"PROPERTIES('a.b'={value})").properties["a.b"].value == value.strip("'\"")


def test_a_quote_in_a_quoted_text_is_doubled() -> None:
    assert one(START + "PROPERTIES('a'='it''s')").properties["a"].value == "it's"


def test_a_comma_may_end_the_properties() -> None:
    assert set(one(START + "PROPERTIES(\n 'a.b'=x,\n 'c'=y,\n)").properties) == {"a.b", "c"}


def test_v20_a_property_given_twice_is_refused() -> None:
    error = refused(START + "PROPERTIES('flush.count'=10,'Flush.Count'=20)")
    assert str(error) == "property 'flush.count' is given twice; take one out"


def test_v22_the_wildcard_needs_backticks() -> None:
    assert "unexpected '*'; expected a topic or a name in backticks" in str(refused("INSERT INTO b SELECT * FROM *"))
    assert one("INSERT INTO b SELECT * FROM `*`").topic == "*"


@pytest.mark.parametrize("words", ["insert into b select * from t", "Insert Into b Select * From t partitionBy a"])
def test_v23_keywords_are_in_any_case(words: str) -> None:
    assert one(words).topic == "t"


def test_v25_a_placeholder_of_the_manual_parses() -> None:
    assert one("INSERT INTO $target SELECT * FROM `*`").bucket == "$target"


@pytest.mark.parametrize("clause", ["LIMIT 0", "LIMIT 5", "BATCH = 10", "AUTOCREATE", "WITHFORMAT JSON", "TTL = 5"])
def test_v26_clauses_of_other_connectors_are_refused(clause: str) -> None:
    word = clause.partition(" ")[0]
    assert str(refused(START + clause)).startswith(f"unexpected {word!r}; expected WHERE or PARTITIONBY or ")


def test_v28_a_name_that_is_a_keyword_needs_backticks() -> None:
    assert "unexpected 'limit'; expected a bucket" in str(refused("INSERT INTO limit SELECT * FROM t"))
    assert "unexpected 'batch'; expected a topic" in str(refused("INSERT INTO b SELECT * FROM batch"))
    assert "a name that is a keyword needs backticks" in str(refused("INSERT INTO b SELECT * FROM select"))
    assert one("INSERT INTO `limit` SELECT * FROM `batch`").topic == "batch"


def test_v29_a_date_pattern_with_dashes_needs_backticks() -> None:
    assert one(START + "PARTITIONBY _date.`yyyy-MM-dd`").partition_by == (("_date", "yyyy-MM-dd"),)
    assert "needs backticks" in str(refused(START + "PARTITIONBY _date.yyyy-MM-dd"))


def test_v31_a_format_stands_bare_or_in_backticks() -> None:
    assert one(START + "STOREAS AVRO").format == one(START + "STOREAS `AVRO`").format == "AVRO"
    assert "expected a format or a name in backticks" in str(refused(START + "STOREAS 'AVRO'"))


def test_v32_a_projection_is_carried_as_sql() -> None:
    found = one("INSERT INTO b SELECT a, b AS c FROM t")
    assert (found.columns, found.where) == ("a, b AS c", None)


# Beyond the connector


@pytest.mark.parametrize(
    ("columns", "where"),
    [
        ("a, b.c AS d, extract(hour from ts), 'x;y'", "a > 1 AND (x = 'PARTITIONBY' OR y IN (1, 2))"),
        ("`from`, concat('FROM ', name)", '`where` = "a;b"'),
        ("count_from, fromage", "storeasy = 1"),
        ("(a + b) * 2 total", "(partitionby > 1)"),
    ],
)
def test_sql_is_carried_as_it_stands(columns: str, where: str) -> None:
    found = one(f"INSERT INTO b SELECT  {columns}  FROM t WHERE  {where}  STOREAS CSV; ")
    assert (found.columns, found.where, found.format) == (columns, where, "CSV")


def test_without_partition() -> None:
    assert not one(START + "NOPARTITION STOREAS CSV").partitioned
    assert one(START).partitioned


def test_a_statement_says_where_its_parts_stand() -> None:
    text = "INSERT INTO b:p\n SELECT a FROM `t`\n WHERE a > 1 PARTITIONBY a STOREAS CSV PROPERTIES('flush.count'=1)"
    found = one(text)
    starts = {part: text[offset:].split()[0] for part, offset in found.offsets.items()}
    assert starts == {
        "target": "b:p",
        "columns": "a",
        "topic": "`t`",
        "where": "WHERE",
        "partition_by": "PARTITIONBY",
        "format": "STOREAS",
    }
    assert text[found.properties["flush.count"].offset :].startswith("'flush.count'")


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("INSERT INTO b\nSELECT *\nFROM t\n  PARTITONBY a", 4, 3),
        ("INSERT INTO b SELECT * FROM t;\nINSERT INTO b SELECT * FORM t", 2, 30),
        ("INSERT INTO b SELECT * FROM t PROPERTIES(\n'a'=1\n'b'=2)", 3, 1),
        ("", 1, 1),
    ],
)
def test_an_error_has_line_and_column(text: str, line: int, column: int) -> None:
    if not text:
        assert parse(text) == ()
        return
    error = refused(text)
    assert (error.line, error.column) == (line, column)


@pytest.mark.parametrize("word", ["Insrt", "INSRET", "insertt"])
def test_a_near_keyword_is_named(word: str) -> None:
    assert str(refused(f"{word} INTO b SELECT * FROM t")).endswith("; did you mean INSERT?")


# Fuzz

KEYWORDS = ["INSERT", "INTO", "SELECT", "FROM", "WHERE", "PARTITIONBY", "NOPARTITION", "STOREAS", "PROPERTIES"]
NAMES = ["b", "b:p", "topic", "a.b", "`x.y`", "`*`", "_value.f", "_date.`yyyy`", "JSON", "LIMIT", "UPSERT", "$", "é"]
MARKS = ["*", ",", ";", "(", ")", "=", ".", "'", '"', "`", "'flush.count'", "1", "'1'", "--", "\\", "\n", "%", "&"]
WORDS = st.sampled_from(KEYWORDS + NAMES + MARKS)
NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: (
        not re.fullmatch(
            "INSERT|INTO|SELECT|FROM|WHERE|PARTITIONBY|NOPARTITION|STOREAS|PROPERTIES|LIMIT|BATCH", name, re.I
        )
    )
)
QUOTED = st.text(st.characters(exclude_characters="`", exclude_categories=("Cs", "Cc")), min_size=1, max_size=8).filter(
    lambda name: name.strip() != ""
)
PART = st.one_of(NAME.map(lambda name: (name, name)), QUOTED.map(lambda name: (name, f"`{name}`")))
VALUE = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)


@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=25).map(" ".join)))
def test_whatever_is_written_gives_statements_or_an_error_with_a_position(text: str) -> None:
    error = attempt(text)
    if error is not None:
        lines = text.split("\n")
        assert 0 <= error.offset <= len(text)
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
        assert str(error)


def attempt(text: str) -> KcqlError | None:
    try:
        parse(text)
    except KcqlError as error:
        return error
    return None


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
    listed = ", ".join(".".join(spelled for _, spelled in element) for element in elements)
    pairs = ", ".join(f"'{name}'='" + value.replace("'", "''") + "'" for name, value in properties.items())
    text = f"INSERT INTO {bucket} SELECT * FROM `{topic}`"
    text += f" PARTITIONBY {listed}" if elements else ""
    text += f" PROPERTIES({pairs})" if properties or rest else ""
    found = one(text)
    assert (found.bucket, found.topic, found.partition_by) == (bucket, topic, tuple(paths))
    assert {name: held.value for name, held in found.properties.items()} == properties
