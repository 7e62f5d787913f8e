"""What the browser looks at: the demo's Kafka, S3 and Spark, a topic with a broken record, and a second project."""

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from s3lake import hours
from s3lake.demo import run_demo
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.demo.process import free_ports
from s3lake.demo.start import BUCKET, start_demo
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import until

_RECORDS = 4_000
_BROKEN = b'{"payment": 17, "amount": '

_LOADED = b'{"query": "{ repositoriesOrError { ... on RepositoryConnection { nodes { name } } } }"}'

_WORKSPACE = """\
load_from:
  - python_module: {module_name: s3lake.definitions, location_name: s3lake}
  - python_file: {relative_path: shop.py, location_name: shop}
"""

_SHOP = '''\
"""A project of its own next to s3lake: its assets follow what s3lake has sealed, in its own resources.

It lands tables of its own, by a configuration of its own.
"""

import dagster as dg
import pandas as pd
import polars as pl
import s3lake

HOURS = dg.HourlyPartitionsDefinition("{start}", timezone="UTC", fmt="%Y-%m-%dT%H")


@dg.asset(
    deps=[["s3", "events", "orders_sealed"]],
    partitions_def=HOURS,
    key_prefix="shop",
    group_name="shop",
    kinds={{"duckdb"}},
    owners=["team:shop"],
    description="Revenue by hour.",
)
def revenue(s3: dg.ResourceParam[object]) -> None: ...


LANDED = {{
    "group_name": "tables",
    "io_manager_key": "s3lake_tables_io_manager",
    "partitions_def": HOURS,
    "backfill_policy": dg.BackfillPolicy.single_run(),
}}


@dg.asset(kinds={{"pandas"}}, description="Visits of each page.", **LANDED)
def visits(context: dg.AssetExecutionContext) -> dict[str, pd.DataFrame]:
    return {{hour: pd.DataFrame({{"page": ["/", "/shop"], "visits": [40, 2]}}) for hour in context.partition_keys}}


@dg.asset(kinds={{"polars"}}, description="Pages with many visits.", **LANDED)
def busy_pages(visits: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    return {{hour: table.filter(pl.col("visits") > 10) for hour, table in visits.items()}}


@dg.definitions
def defs() -> dg.Definitions:
    assets, resources = [revenue, visits, busy_pages], {{"s3": "the shop's own"}}
    own = dg.Definitions(assets, resources=resources, executor=dg.multiprocess_executor)
    return dg.Definitions.merge(own, s3lake.build_definitions(s3lake.load("{home}/tables.yaml")))
'''


@dataclass(frozen=True)
class Site:
    """Dagster's UI of the demo.

    Attributes:
        url: where it is.
        hours: the hours that are over, of which nothing is landed.
        home: a directory with the configuration `s3lake.yaml`, which is Dagster's too.
        s3: the server of the bucket.
    """

    url: str
    hours: tuple[str, str, str]
    home: Path
    s3: EmbeddedS3


@contextmanager
def start_site(*, red: bool = False) -> Iterator[Site]:
    """Start all of it; everything ends with the block, or with this process.

    Args:
        red: add the sinks `harmed`, `ahead` and `tabled`, whose hours become red.
    """
    with start_demo(_RECORDS, None, lambda _: None, warm=True) as demo:
        first, second, third = demo.hours[:3]
        _produce_payments(demo.kafka.bootstrap_servers, first, second)
        config = yaml.safe_load(demo.config_path.read_text())
        strict = {"name": "strict", "topics": ["payments"], "bucket": BUCKET, "prefix": "strict", "start": first}
        lenient = {**strict, "name": "lenient", "prefix": "lenient", "errors": {"tolerance": "all"}}
        typed = {**lenient, "name": "typed", "prefix": "typed", "format": {"type": "parquet"}}
        config["sinks"] += [strict, lenient, typed]
        if red:
            _produce_clocks(demo.kafka.bootstrap_servers, first, second)
            config["sinks"] += _define_red_sinks(lenient, demo.home)
        config["s3"]["console"] = f"{demo.s3.endpoint_url}/{{bucket}}?prefix={{prefix}}"
        demo.config_path.write_text(yaml.safe_dump(config, sort_keys=False))
        (demo.home / "workspace.yaml").write_text(_WORKSPACE)
        (demo.home / "shop.py").write_text(_SHOP.format(start=first, home=demo.home))
        tables = {"name": "tables", "bucket": BUCKET, "prefix": "tables", "start": first, "format": {"type": "parquet"}}
        (demo.home / "tables.yaml").write_text(yaml.safe_dump({**config, "sinks": [tables]}))
        with run_demo.serve_ui(demo, *free_ports(1), sensors=False) as (_, url):
            until(lambda: _locations(url) == 2)
            yield Site(url, (first, second, third), demo.home, demo.s3)


def _locations(url: str) -> int:
    """How many projects the UI has loaded; none while it does not answer."""
    question = urllib.request.Request(f"{url}/graphql", _LOADED, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(question, timeout=PATIENCE_S) as answer:
            return len(json.load(answer)["data"]["repositoriesOrError"].get("nodes", ()))
    except OSError:
        return 0


def _define_red_sinks(lenient: dict[str, Any], home: Path) -> list[dict[str, Any]]:
    """Return sinks whose hours become red; the directory of the table's catalog is missing."""
    catalog = {"type": "sql", "uri": f"sqlite:///{home / 'unmounted' / 'catalog.db'}"}
    table = {"format": {"type": "parquet"}, "table": {"name": "lake.payments", "catalog": catalog}}
    return [
        {**lenient, "name": "harmed", "prefix": "harmed"},
        {**lenient, "name": "ahead", "prefix": "ahead", "topics": ["clocks"]},
        {**lenient, "name": "tabled", "prefix": "tabled", **table},
    ]


def _produce_clocks(bootstrap_servers: str, hour: str, later: str) -> None:
    """A record of an hour, one of a clock that is far ahead, and one of a later hour."""
    cluster = {"bootstrap.servers": bootstrap_servers}
    admin, topic = (
        AdminClient(cluster),
        NewTopic("clocks", 1, 1, config={"message.timestamp.after.max.ms": str(2**63 - 1)}),
    )
    admin.create_topics([topic])["clocks"].result(PATIENCE_S)
    producer = Producer(cluster)
    for stamp_ms in (hours.start_ms(hour), hours.start_ms("2199-01-01T00"), hours.start_ms(later)):
        producer.produce("clocks", b'{"tick": 1}', timestamp=stamp_ms)
    assert producer.flush(PATIENCE_S) == 0


def _produce_payments(bootstrap_servers: str, hour: str, later: str) -> None:
    """Payments of an hour, one of them broken, and one of a later hour, which has a currency and a payer too."""
    cluster = {"bootstrap.servers": bootstrap_servers}
    admin = AdminClient(cluster)
    admin.create_topics([NewTopic("payments", 1, 1)])["payments"].result(PATIENCE_S)
    producer = Producer(cluster)
    payments = [json.dumps({"payment": number, "amount": 9.5}).encode() for number in range(17)]
    for payment in (*payments, _BROKEN):
        producer.produce("payments", payment, timestamp=hours.start_ms(hour))
    changed = {"payment": 18, "amount": 9.5, "currency": "EUR", "payer": {"country": "PT"}}
    producer.produce("payments", json.dumps(changed).encode(), timestamp=hours.start_ms(later))
    assert producer.flush(PATIENCE_S) == 0
