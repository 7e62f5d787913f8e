"""The demo through Dagster: every hour landed, then the UI, the daemon and new events."""

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake.demo import events
from s3lake.demo.process import GuardedProcess, free_port, free_ports, spawn
from s3lake.demo.start import Demo
from s3lake.index.commit.documents import collect_files
from s3lake.orchestration import dagster_names
from s3lake.orchestration.build import build_definitions
from s3lake.orchestration.catalog import Catalog
from s3lake.orchestration.private_dagster import read_logged_message
from s3lake.orchestration.translator import sealed_key, sink_key
from s3lake.text.quantities import format_count

if TYPE_CHECKING:
    from s3lake.land.topic.topic_sink import TopicSink

_UI_PORT = 3000
"""Dagster's own; another one if it is in use."""

_QUERY = "SELECT count(*) FROM records"


def backfill(demo: Demo, report: Callable[[str], None]) -> None:
    """Land all hours of both topics through the Dagster definitions, in this process, recorded in the demo's instance.

    Then materialise the examples that follow sealed hours. `report` gets each line that the run logs, while it works.

    Raises:
        DagsterError: a step failed.
        KeyboardInterrupt: the process is asked to end.
    """
    logger = logging.Logger("s3lake demo")
    logger.addHandler(_Reporter(report))
    loggers = dg.Definitions(loggers={"demo": dg.logger(lambda _: logger)})
    definitions, catalog = dg.Definitions.merge(build_definitions(demo.config), loggers), Catalog(demo.config)
    job = definitions.resolve_implicit_global_asset_job_def()
    routes = [(sink, topic) for sink in demo.config.sinks for topic in demo.topics if sink.reads(topic)]
    with dg.DagsterInstance.from_config(str(demo.home)) as instance:

        def run(selection: Sequence[dg.AssetKey], first: str, last: str) -> None:
            try:
                job.execute_in_process(
                    asset_selection=list(selection),
                    tags=dagster_names.range_tags(first, last),
                    run_config={"loggers": {"demo": {}}},
                    instance=instance,
                )
            except dg.DagsterExecutionInterruptedError:  # Ctrl-C and SIGTERM, while Dagster runs
                raise KeyboardInterrupt from None

        run([sink_key(*route) for route in routes], demo.hours[0], demo.hours[-1])
        for sink, topic in routes:
            example = catalog.other_key("example", sink.name, f"{topic}_by_type")
            sealed = sorted(instance.get_materialized_partitions(sealed_key(sink, topic)))
            if definitions.resolve_asset_graph().has(example) and sealed:
                report(
                    f"{example.to_user_string()}, an example that follows: {format_count(len(sealed), 'sealed hours')}"
                )
                run([example], sealed[0], sealed[-1])


class _Reporter(logging.Handler):
    """Reports what a run logs and its page in the UI shows, without Dagster's own events."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        message = read_logged_message(record)
        if message is not None:
            self._report(message)


def choose_ui_port() -> int:
    """Choose the port of the UI, before it is started."""
    return _UI_PORT if free_port(_UI_PORT) else free_ports(1)[0]


@contextmanager
def serve_ui(demo: Demo, port: int, *, sensors: bool = True) -> Iterator[tuple[GuardedProcess, str]]:
    """Start Dagster's UI and daemon for the demo, with sensors on or off. Yields the process and the URL."""
    command = [sys.executable, "-m", "dagster", "dev", "-w", str(demo.home / "workspace.yaml")]
    command += ["-h", "127.0.0.1", "-p", str(port), "--log-level", "warning"]
    environment = {
        **os.environ,
        "DAGSTER_HOME": str(demo.home),
        "DAGSTER_DISABLE_TELEMETRY": "yes",
        "S3LAKE_CONFIG": str(demo.config_path),
        "S3LAKE_SENSORS": "running" if sensors else "",
    }
    with spawn(command, demo.home / "dagster.log", env=environment) as process:
        yield process, f"http://127.0.0.1:{port}"


def list_addresses(demo: Demo, targets: Sequence["TopicSink"], url: str) -> dict[str, str]:
    """Return the addresses of all servers, and a query of a landed directory for DuckDB."""
    s3 = demo.s3
    addresses = {
        "ui": f"{url} (up in about half a minute)",
        "spark": demo.config.spark.master,
        **demo.addresses,
    }
    for target, hour in product(targets, demo.hours):
        for file in collect_files(target.report(hour).manifests, "data"):
            host = s3.endpoint_url.removeprefix("http://")
            secret = f"ENDPOINT '{host}', KEY_ID '{s3.access_key_id}', SECRET '{s3.secret_access_key}'"
            secret += f", REGION '{s3.region}', URL_STYLE 'path', USE_SSL false"
            path = f"s3://{target.sink.bucket}/{file.key.rpartition('/')[0]}/*{target.sink.format.extension}"
            query = f"CREATE SECRET (TYPE s3, {secret}); SELECT count(*) FROM '{path}'"
            return addresses | {"look at a directory": f'duckdb -c "{query}"'}
    return addresses


def query_table(target: "TopicSink", hours: Sequence[str]) -> dict[str, Any] | None:
    """Count a topic's table with DuckDB, and the landed records of the index. Return None if it has no table."""
    if target.table is None:
        return None
    import duckdb

    landed, rows = sum(target.report(hour).sums.landed for hour in hours), 0
    table = target.table.load()
    if table is not None:
        with duckdb.connect() as connection:
            connection.register("records", table.scan().to_arrow_batch_reader())
            [[rows]] = connection.execute(_QUERY).fetchall()
    return {"table": target.table.name, "query": _QUERY, "rows": rows, "landed": landed}


def keep_demo_running(demo: Demo, process: GuardedProcess, stop: threading.Event) -> None:
    """Produce a few events a second, and keep Spark running, until `stop` is set or the UI's process ends."""
    arguments = {"topics": demo.topics, "fields": demo.fields}
    producer = threading.Thread(
        target=events.keep_producing, args=(demo.kafka.bootstrap_servers, stop), kwargs=arguments, daemon=True
    )
    producer.start()
    while not stop.wait(0.5) and process.running:
        if demo.spark is not None:
            demo.spark.keep()
    stop.set()
    producer.join(timeout=10)


def count_expected(demo: Demo) -> int:
    """Count the committed records that the sinks should have landed, skipped or refused."""
    return sum(
        produced.committed
        for sink in demo.config.sinks
        for topic, produced in demo.produced.items()
        if sink.reads(topic)
    )
