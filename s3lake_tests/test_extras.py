"""A feature without its libraries names the extra of s3lake that installs them."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import new_class
from typing import Any

import pytest

from s3lake import cli
from s3lake.config import native
from s3lake.errors import ConfigurationError
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.index.store.memory import MemoryStore
from s3lake.index.store.s3_connection import S3Connection
from s3lake.lake.forwarding.mongodb import MongoDB
from s3lake.lake.forwarding.postgres import Postgres
from s3lake.lake.readback.arrow_dataset import find_reader
from s3lake.lake.table.iceberg import LakeTable
from s3lake.lake.table.iceberg.iceberg_catalog import open_catalog
from s3lake.land.change.condition import Condition
from s3lake.land.spark import shared
from s3lake.records.schema.protobuf import compiler
from s3lake.source.iggy.iggy_connection import IggyConnection
from s3lake_tests.kit.sinks import make_sink

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
RULES = """
kafka: {bootstrap_servers: "127.0.0.1:9092"}
sinks: [{name: events, topics: [orders], bucket: lake, start: 2026-11-20T00, schema: {rules: {required: [id]}}}]
"""


def run(*arguments: str) -> None:
    cli.program()(arguments, standalone_mode=False)


def convert_to(module: str, name: str) -> None:
    annotation = new_class(name)
    annotation.__module__ = module
    reader = find_reader(annotation)
    assert reader is not None
    reader(None)  # type: ignore[arg-type]


def make_table() -> LakeTable:
    catalog = {"type": "sql", "uri": "sqlite://"}
    sink = make_sink(format={"type": "parquet"}, table={"name": "lake.orders", "catalog": catalog})
    assert sink.table is not None
    return LakeTable(sink, sink.table, TopicIndex(MemoryStore(), ".indexes/events", "orders"), S3Connection())


async def ask_nothing(_: Any) -> None: ...


FEATURES: dict[str, list[tuple[str, str, Callable[[], object]]]] = {
    "connect": [
        ("grpc_status", "spark.master sc://", lambda: shared.open_shared_session("sc://127.0.0.1:1", {}, None))
    ],
    "demo": [("moto", "s3lake demo", lambda: run("demo"))],
    "duckdb": [
        ("duckdb", "--where", lambda: Condition("id = 1")),
        ("duckdb", "an input of duckdb", lambda: convert_to("_duckdb", "DuckDBPyRelation")),
        ("duckdb", "s3lake demo --table", lambda: run("demo", "--table")),
    ],
    "iceberg": [
        ("pyiceberg", "an Iceberg table", lambda: open_catalog({"type": "sql"}, "lake", S3Connection(), {})),
        ("pyiceberg", "an Iceberg table", lambda: make_table().check()),
        ("pyiceberg", "an Iceberg table", lambda: make_table().sync()),
        ("pyiceberg", "an Iceberg table", lambda: make_table().sync(["2026-11-20T05"])),
        ("pyiceberg", "an Iceberg table", lambda: list(make_table().find_differences())),
        ("pyiceberg", "s3lake demo --table", lambda: run("demo", "--table")),
    ],
    "iggy": [("apache_iggy", "source.type iggy", lambda: IggyConnection("127.0.0.1:1").ask("topics", ask_nothing))],
    "jsonschema": [("jsonschema_rs", "schema.rules", lambda: native.load_text(RULES, "s3lake.yaml"))],
    "metrics": [("prometheus_client", "s3lake metrics", lambda: run("metrics", "s3lake.yaml"))],
    "mongodb": [
        ("pymongo", "a forward to mongodb", lambda: MongoDB("mongodb://127.0.0.1:1", database="lake").create())
    ],
    "polars": [
        ("polars", "an input of polars", lambda: convert_to("polars.lazyframe.frame", "LazyFrame")),
        ("polars", "an input of polars", lambda: convert_to("polars.dataframe.frame", "DataFrame")),
    ],
    "postgres": [("psycopg", "a forward to postgres", lambda: Postgres("host=127.0.0.1").place)],
    "protobuf": [
        (
            "grpc_tools",
            "converter protobuf",
            lambda: compiler.compile_message('syntax = "proto3"; message NotCompiledYet {}', {}, (0,)),
        ),
    ],
}
"""By extra: a library, what needs it, and what a user does."""

WITHOUT_A_FEATURE = {
    "all": "all extras that are in FEATURES",
    "dev": "the tools of the tests",
    "docker": "Dagster's own libraries, and other extras",
    "docs": "the site",
}


@pytest.mark.parametrize(
    ("extra", "library", "feature", "use"),
    [(extra, *case) for extra, cases in FEATURES.items() for case in cases],
    ids=[f"{extra}: {case[1]}" for extra, cases in FEATURES.items() for case in cases],
)
def test_feature_without_its_library_names_the_extra_that_installs_it(
    extra: str, library: str, feature: str, use: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [library, *(name for name in sys.modules if name.startswith(f"{library}."))]:
        monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError) as error:
        use()
    message = str(error.value)
    assert message.startswith(f"{feature} needs {library}")
    assert message.endswith(f", which is not installed: pip install 's3lake[{extra}]'")


def test_every_extra_has_a_feature_here_or_a_reason() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert sorted(extras) == sorted([*FEATURES, *WITHOUT_A_FEATURE])
    (everything,) = extras["all"]
    assert everything == f"s3lake[{','.join(sorted([*FEATURES, 'docker']))}]"
