"""Two topics that would have one Iceberg table are refused when the configuration is loaded."""

import pytest

from s3lake.config import native
from s3lake.config.model import Config
from s3lake.errors import ConfigurationError


def load(*sinks: tuple[str, str, str], second_catalog: str = "http://c", catalog: str = "rest") -> Config:
    """Sinks of a name, topics, and the name of their table, each in a bucket of its own."""
    uris = ["http://c", second_catalog]
    lines = [
        f"  - {{name: {name}, {topics}, bucket: lake-{name}, start: 2026-01-05T00, format: {{type: parquet}}, "
        f"table: {{name: '{table}', catalog: {{type: {catalog}, uri: '{uri}'}}}}}}"
        for (name, topics, table), uri in zip(sinks, uris, strict=False)
    ]
    return native.load_text("\n".join(["kafka: {bootstrap_servers: 'h:9092'}", "sinks:", *lines]), "s3lake.yaml")


@pytest.mark.parametrize(
    "sinks",
    [
        [("a", "topics: [x]", "lake.t"), ("b", "topics: [y]", "lake.t")],
        [("a", "topics: [x]", "lake.{topic}"), ("b", "topics: [x]", "lake.{topic}")],
        [("a", "topics: [x]", "lake.{topic}"), ("b", "topics_regex: 'x.*'", "lake.{topic}")],
        [("a", "topics: [x.y, x-y]", "lake.{topic}")],
        [("a", "topics: [x_a]", "lake.{topic}"), ("x", "topics: [a]", "lake.{sink}_{topic}")],
    ],
)
def test_one_table_of_two_topics_is_refused_at_load(sinks: list[tuple[str, str, str]]) -> None:
    with pytest.raises(ConfigurationError, match="would both be the table lake"):
        load(*sinks)


@pytest.mark.parametrize(
    "sinks",
    [
        [("a", "topics: [x]", "lake.{sink}_{topic}"), ("b", "topics: [x]", "lake.{sink}_{topic}")],
        [("a", "topics: [x]", "lake.{topic}"), ("b", "topics_regex: 'y.*'", "lake.{topic}")],
        [("a", "topics: [x, y]", "lake.{topic}")],
    ],
)
def test_tables_of_their_own_are_loaded(sinks: list[tuple[str, str, str]]) -> None:
    assert len(load(*sinks).sinks) == len(sinks)


OTHER_CASES = [
    [("a", "topics: [Orders, orders]", "lake.{topic}")],
    [("a", "topics: [x]", "lake.Orders"), ("b", "topics: [y]", "lake.orders")],
    [("a", "topics: [x]", "Lake.orders"), ("b", "topics: [y]", "lake.orders")],
]


@pytest.mark.parametrize("catalog", ["glue", "hive"])
@pytest.mark.parametrize("sinks", OTHER_CASES)
def test_names_that_differ_in_case_are_refused_where_a_catalog_has_lower_case_only(
    sinks: list[tuple[str, str, str]], catalog: str
) -> None:
    with pytest.raises(ConfigurationError, match="would both be the table lake"):
        load(*sinks, catalog=catalog)


@pytest.mark.parametrize("sinks", OTHER_CASES)
def test_names_that_differ_in_case_are_two_tables_of_other_catalogs(sinks: list[tuple[str, str, str]]) -> None:
    assert len(load(*sinks).sinks) == len(sinks)


def test_one_name_in_two_catalogs_is_two_tables() -> None:
    assert load(("a", "topics: [x]", "lake.t"), ("b", "topics: [x]", "lake.t"), second_catalog="http://d")
