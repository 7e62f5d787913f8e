"""`s3lake.observed`: what connectors do where their documents say otherwise."""

import pytest

from s3lake.config.draft import Loaded
from s3lake.errors import ConfigurationError
from s3lake_tests.config import bases
from s3lake_tests.layout.files import Record

REAL = {"s3lake.observed": "true"}
KCQL = "connect.s3.kcql"
FORMAT = "io.confluent.connect.s3.format."


def fields(loaded: Loaded) -> tuple[str, ...]:
    envelope = loaded.config.sinks[0].envelope
    assert envelope is not None
    return envelope.fields


def told(loaded: Loaded) -> str:
    return "\n".join(map(str, loaded.notices))


def test_a_part_is_only_a_buffer() -> None:
    part = {"s3.part.size": "5242880"}
    documented, observed = bases.load(bases.CONFLUENT, part), bases.load(bases.CONFLUENT, {**part, **REAL})
    assert [loaded.config.sinks[0].flush.size for loaded in (documented, observed)] == [5_242_880, 80 * 10**9]
    assert "has no meaning: parts of an upload have a size of their own" in told(observed)
    assert "write s3lake.observed=true for that" in told(documented)


def test_only_csv_with_headers_has_a_header_line() -> None:
    headers = []
    for form in ("CSV", "CSV_WITHHEADERS"):
        query = f"INSERT INTO lake SELECT * FROM demo STOREAS `{form}`"
        headers.append(bases.load(bases.LENSES, {KCQL: query, **REAL}).config.sinks[0].format.header)
    assert headers == [False, True]


def test_members_of_json_are_in_the_order_of_javas_map() -> None:
    query = "INSERT INTO lake SELECT * FROM demo PROPERTIES('store.envelope'=true)"
    lenses = bases.load(bases.LENSES, {KCQL: query, **REAL})
    assert fields(lenses) == ("headers", "metadata", "value", "key")
    aiven = bases.load(bases.AIVEN, {"format.output.fields": "key,value,timestamp,headers", **REAL})
    assert fields(aiven) == ("headers", "value", "key", "timestamp")


def test_columns_keep_the_order_of_the_file() -> None:
    avro = "INSERT INTO lake SELECT * FROM demo STOREAS AVRO PROPERTIES('store.envelope'=true)"
    assert fields(bases.load(bases.LENSES, {KCQL: avro, **REAL})) == ("key", "value", "headers", "metadata")
    aiven = bases.load(bases.AIVEN, {"format.output.type": "parquet", "format.output.fields": "value,key", **REAL})
    assert fields(aiven) == ("value", "key")


def test_the_environment_says_it_where_the_file_does_not() -> None:
    parquet = {"format.class": f"{FORMAT}parquet.ParquetFormat"}
    (key,) = bases.keys_of(bases.load(bases.CONFLUENT, parquet, S3LAKE_OBSERVED="true"), Record())
    assert key.endswith(".snappy.parquet")
    unless = {**parquet, "s3lake.observed": "false"}
    (key,) = bases.keys_of(bases.load(bases.CONFLUENT, unless, S3LAKE_OBSERVED="true"), Record())
    assert key.endswith("0.parquet")
    with pytest.raises(ConfigurationError, match="S3LAKE_OBSERVED: 'perhaps' is not allowed; write true or false"):
        bases.load(bases.CONFLUENT, {}, S3LAKE_OBSERVED="perhaps")


def test_iggys_document_agrees_with_its_connector() -> None:
    loaded = bases.iggy("start =", "observed = true\nstart =")
    assert "has no meaning: Iggy's document says nothing that its connector does otherwise" in told(loaded)
