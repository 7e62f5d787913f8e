"""Commands that serve: Spark for many runs, and the demo."""

from contextlib import ExitStack
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from s3lake import hours
from s3lake.cli.land import describe_hour, format_hour
from s3lake.cli.output import DIFFERENCES, ProgressLine, emit, print_text, tell
from s3lake.cli.request import Request, start_spark
from s3lake.cli.verify import describe_totals, format_totals, print_differences, verify_targets
from s3lake.errors import ConfigurationError
from s3lake.plugins import require_extra
from s3lake.text.quantities import format_count, parse_duration

if TYPE_CHECKING:
    from s3lake.config.model import Config
    from s3lake.land.topic.topic_sink import TopicSink

_PORT = 15002
"""`land.spark.shared.PORT`, which takes a tenth of a second to import for the text of `--help`."""
_NEXT = """\
next: s3lake demo --serve keeps all of it running, with Dagster's UI and new events
      s3lake demo --keep DIR keeps the files, the configuration and Dagster's state in DIR"""


def run_spark(
    request: Request,
    master: Annotated[
        str | None, typer.Option(help="Spark's master; default: the cores of this machine.", show_default=False)
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on. Spark Connect checks no user.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for a free port.")] = _PORT,
    idle: Annotated[
        str | None, typer.Option(metavar="30m", help="Stop after this time without work.", show_default=False)
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Start no server; check whether the one at sc://HOST:PORT answers."),
    ] = None,
) -> None:
    """Serve warm Spark sessions (Spark Connect) in the foreground.

    Runs use it by spark.master: sc://HOST:PORT. CONFIG sets its memory and conf.
    """
    from s3lake.config import model

    if check is not None:
        address = check if "://" in check else f"sc://{check}"
        if not address.startswith("sc://"):  # Spark would start a session of its own
            raise ConfigurationError(f"--check {check}: expected the address of a server, as sc://HOST:PORT")
        start_spark(model.Spark(master=address), quiet=request.as_json)
        emit(request.as_json, {"serves": check}, "{serves} serves".format_map)
        return
    from s3lake.land.spark.connect_server import serve
    from s3lake.land.spark.starting import tell_start

    settings = request.load(to_land=False).spark if request.config else model.Spark()
    master = master or (settings.master if not settings.master.startswith("sc://") else "local[*]")
    if master.startswith("sc://"):
        raise ConfigurationError(f"--master {master}: a server needs a cluster or this machine's cores, not a server")
    try:
        idle_s = None if idle is None else parse_duration(idle)
    except ValueError as error:
        raise ConfigurationError(f"--idle {idle}: {error}") from None

    def ready(address: str, cores: int) -> None:
        starting.close()
        emit(
            request.as_json,
            {"serves": address, "cores": cores},
            lambda row: f"{row['serves']} serves, {format_count(cores, 'cores')}",
        )

    print_text(request.as_json, f"starting Spark, {master}")
    with ExitStack() as starting:
        if not request.as_json:
            starting.enter_context(tell_start(tell))
        serve(settings.model_copy(update={"master": master}), host, port, idle_s, ready)


def run_demo(
    request: Request,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="Land by the sinks of this file, in any dialect.")
    ] = None,
    records: Annotated[int, typer.Option(min=1, help="How many committed records to produce.")] = 200_000,
    serve: Annotated[bool, typer.Option("--serve", help="Keep producing, and serve Dagster's UI.")] = False,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep data, configuration and state in this directory.")
    ] = None,
    table: Annotated[bool, typer.Option("--table", help="Land into Iceberg tables too, and query them.")] = False,
    services: Annotated[
        bool, typer.Option("--services", help="Only Kafka, with events, and S3: land nothing, serve until Ctrl-C.")
    ] = False,
) -> None:
    """Run real Kafka and S3 on this machine: produce events, land every hour through Dagster, verify every record."""
    if services and (serve or table):
        raise ConfigurationError("--services lands nothing: leave out --serve and --table, or --services")
    _require_libraries(serve=serve, table=table)
    as_json = request.as_json
    own = Request(config, request.dialect, request.name, request.worker).load(to_land=False) if config else None
    if own is not None and any(sink.forwards or sink.table or sink.converter.registry for sink in own.sinks):
        print_text(as_json, "the demo has no servers for forwards, tables and schemas of the file: it lands plain JSON")
    if services:
        _serve_services(records, keep, own, as_json=as_json)
        return
    _run_demo(records, keep, own, serve=serve, table=table, as_json=as_json)


def _require_libraries(*, serve: bool, table: bool) -> None:
    """See that all is installed, before anything is started."""
    with require_extra("demo", "s3lake demo"):
        import moto  # noqa: F401

        if serve:
            metadata.version("dagster-webserver")  # its import takes a second
    if table:
        with require_extra("iceberg", "s3lake demo --table"):
            import pyiceberg  # noqa: F401
        with require_extra("duckdb", "s3lake demo --table"):
            import duckdb  # noqa: F401


def _serve_services(records: int, keep: Path | None, own: "Config | None", *, as_json: bool) -> None:
    """Serve Kafka and S3 until Ctrl-C."""
    from s3lake.demo import start

    print_text(as_json, "starting Kafka and S3 on this machine")
    produced = ProgressLine("produce", records, quiet=as_json)
    with start.start_demo(records, keep, produced, own, tell=partial(print_text, as_json)) as lake:
        stop = start.stop_on_signal()
        emit(as_json, lake.addresses, lambda _: "Ctrl-C ends")
        stop.wait()


def _run_demo(
    records: int, keep: Path | None, own: "Config | None", *, serve: bool, table: bool, as_json: bool
) -> None:
    """Produce, land, verify, and serve until Ctrl-C if `serve` is set."""
    from s3lake.demo import run_demo, start
    from s3lake.index.plan.hour_grid import Grid
    from s3lake.lake.verify import combine_reports

    port = run_demo.choose_ui_port() if serve else 0
    print_text(as_json, f"starting Kafka{', S3 and Spark' if serve else ' and S3'} on this machine")
    if serve:
        print_text(as_json, f"Dagster's UI will be at http://127.0.0.1:{port} as soon as everything is verified")
    print_line = partial(print_text, as_json)
    with ExitStack() as stack:
        produced = ProgressLine("produce", records, quiet=as_json)
        lake = stack.enter_context(
            start.start_demo(records, keep, produced, own, warm=serve, tables=table, tell=print_line)
        )
        total = lake.total
        committed = format_count(total.committed, "committed records")
        line = f"produced {committed}, {total.malformed:,} of them malformed, and {total.aborted:,} aborted"
        counts = {"committed": total.committed, "malformed": total.malformed, "aborted": total.aborted}
        emit(as_json, counts, lambda _: line)
        server = "; Spark starts first" if lake.spark is None else f" and {lake.spark.address}"
        print_text(as_json, f"backfilling {lake.hours[0]} to {lake.hours[-1]} through Dagster{server}")
        run_demo.backfill(lake, lambda message: print_text(as_json, f"  {message}"))
        targets = list(Request().targets(lake.config))
        for hour in lake.hours:
            for target in targets:
                row = describe_hour(target.sink.name, target.topic, target.report(hour))
                emit(as_json, row, format_hour)
        grids = [Grid.from_sink(target.sink, hours.now_ms()) for target in targets]
        reports = verify_targets(lake.config, targets, grids, quiet=as_json)
        for target, report in zip(targets, reports, strict=True):
            print_differences(target, report, as_json=as_json)
        report = combine_reports(reports)
        lost = max(0, run_demo.count_expected(lake) - report.compared - report.not_compared)
        emit(as_json, describe_totals(report) | {"missing": report.missing + lost}, format_totals)
        behind = [target for target in targets if table and not _query_table(target, lake.hours, as_json=as_json)]
        if serve:
            with run_demo.serve_ui(lake, port) as (process, url):
                stop = start.stop_on_signal()
                addresses = run_demo.list_addresses(lake, targets, url)
                lines = [*(f"{name}: {value}" for name, value in addresses.items()), "Ctrl-C ends"]
                emit(as_json, addresses, lambda _: "\n".join(lines))
                run_demo.keep_demo_running(lake, process, stop)
        else:
            print_text(as_json, _NEXT)
        if lost or behind or not report.clean:
            raise typer.Exit(DIFFERENCES)


def _query_table(target: "TopicSink", hours: list[str], *, as_json: bool) -> bool:
    """Query a topic's table. Return whether it has as many rows as the index."""
    from s3lake.demo.run_demo import query_table

    row = query_table(target, hours)
    if row is None:
        return True
    line = "DuckDB, {table}: {query} -> {rows:,}; landed {landed:,}"
    emit(as_json, row, lambda row: line.format(**row))
    return bool(row["rows"] == row["landed"])
