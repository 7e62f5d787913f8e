"""The command line. Exit codes: 0 fine, 1 differences found, 2 configuration or input, 3 failed while running."""

import functools
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from s3lake import hours, rows
from s3lake.dialects import native
from s3lake.errors import ConfigurationError, S3LakeError
from s3lake.sink import Config

if TYPE_CHECKING:
    from s3lake.landing import Landing
    from s3lake.store import Store
    from s3lake.verify import Report

DIFFERENCES, INPUT, FAILED = 1, 2, 3
_TABLE_WIDTH = 120  # of a table that is not on a terminal; narrower ones would cut off figures

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, pretty_exceptions_enable=False)
index_app = typer.Typer(no_args_is_help=True, help="Look at the index, and mend it knowingly.")
app.add_typer(index_app, name="index")
_out, _err = Console(highlight=False, soft_wrap=True), Console(stderr=True, highlight=False, soft_wrap=True)

ConfigArgument = Annotated[
    Path | None, typer.Argument(metavar="CONFIG", help="Native YAML.", envvar="S3LAKE_CONFIG", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON document a line.")]
SinkOption = Annotated[str | None, typer.Option("--sink", help="Only this sink.")]
TopicOption = Annotated[str | None, typer.Option("--topic", help="Only this topic.")]
FromOption = Annotated[str | None, typer.Option("--from", metavar="H", help="First hour, as 2026-11-20T05 (UTC).")]
ToOption = Annotated[str | None, typer.Option("--to", metavar="H", help="Last hour, included.")]


def main() -> NoReturn:
    """The console script."""
    try:
        app()
    except ConfigurationError as error:
        _fail(error, INPUT)
    except S3LakeError as error:
        _fail(error, FAILED)
    except Exception:  # Python's own exit code for these, 1, says that differences were found
        traceback.print_exc()
        raise SystemExit(FAILED) from None
    raise SystemExit(0)


@app.command()
def demo(
    records: Annotated[int, typer.Option(min=1, help="Committed records to produce.")] = 200_000,
    serve: Annotated[bool, typer.Option("--serve", help="Keep producing and serve the Dagster UI.")] = False,
    keep: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep data, configuration and state here.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Real Kafka and S3 on this machine: produce events, land every hour through Dagster, verify every record."""
    from s3lake.verify import combined

    try:
        from s3lake.demo import run
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"the demo needs {error.name}: pip install 's3lake[demo]'") from None
    with _progress("produce", records, quiet=as_json) as produced, run.stage(records, keep, produced) as stage:
        _say(as_json, f"backfilling {stage.hours[0]} to {stage.hours[-1]} through Dagster")
        run.backfill(stage)
        landings = list(_landings(stage.config))
        for hour in stage.hours:
            for lander in landings:
                _tell(as_json, rows.hour_row(lander.topic, lander.report(hour)), rows.hour_line)
        report = combined(_verified(stage.config, landings, None, quiet=as_json))
        missing = report.missing + max(0, stage.produced.committed - report.produced)
        _tell(
            as_json, rows.totals(report) | {"produced": stage.produced.committed, "missing": missing}, rows.totals_line
        )
        _list_differences(report, as_json)
        if serve:
            with run.served(stage) as (process, url):
                _tell(as_json, run.addresses(stage, url), rows.address_lines)
                run.trickle_until_interrupted(stage, process)
        if missing or not report.clean:
            raise typer.Exit(DIFFERENCES)


@app.command()
def check(
    config: ConfigArgument = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Also try Kafka, the bucket and conditional writes.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """The effective configuration, every default included."""
    from s3lake.orchestration.resources import KafkaResource

    loaded = _load(config)
    if as_json:
        _print_json(loaded.model_dump(mode="json", by_alias=True))
    else:
        _out.print(native.dump(loaded), end="", markup=False)
    _ = KafkaResource(loaded.kafka).spark_options  # raises where the properties do not fit both clients
    if connect:
        failed = False
        for what, attempt in _connections(loaded):
            outcome = _outcome(attempt)
            failed = failed or outcome != "ok"
            _tell(as_json, {"check": what, "outcome": outcome}, lambda row: f"{row['check']}: {row['outcome']}")
        if failed:
            raise typer.Exit(FAILED)


@app.command()
def verify(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    first: FromOption = None,
    last: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read Kafka and the committed files, independently of the writer, and compare them record by record."""
    from s3lake.verify import combined

    loaded = _load(config)
    landings = list(_landings(loaded, sink, topic))
    reports = _verified(loaded, landings, _range(first, last), quiet=as_json)
    for lander, found in zip(landings, reports, strict=True):
        for one in found.checked:
            _tell(
                as_json, {"sink": lander.sink.name, "topic": lander.topic, **rows.checked_row(one)}, rows.checked_line
            )
    report = combined(reports)
    _list_differences(report, as_json)
    _tell(as_json, rows.totals(report), rows.totals_line)
    if not report.clean:
        raise typer.Exit(DIFFERENCES)


@index_app.command("show")
def index_show(
    config: ConfigArgument = None, sink: SinkOption = None, topic: TopicOption = None, as_json: JsonOption = False
) -> None:
    """Tiles, commits, what is pending and what is garbage."""
    for lander in _landings(_load(config), sink, topic):
        if as_json:
            for tile in lander.index.tiles():
                _print_json({"sink": lander.sink.name, "topic": lander.topic, **rows.tile_row(tile)})
            continue
        table = Table(title=f"{lander.sink.name}: {lander.topic}", title_justify="left", box=None, pad_edge=False)
        for column in ("hour", "state", "offsets", "landed", "commits", "pending", "garbage", "expired"):
            table.add_column(column, no_wrap=True)
        for tile in lander.index.tiles():
            table.add_row(*rows.tile_cells(tile))
        _out.print(table, width=max(_out.width, _TABLE_WIDTH), crop=False)


@index_app.command("accept")
def index_accept(
    topic: Annotated[str, typer.Option(help="The topic that was deleted and created again.")],
    config: ConfigArgument = None,
    sink: SinkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a topic that was deleted and created again; what the former one had not landed is given up."""
    from s3lake.commit.recreated import accept

    for lander in _landings(_load(config), sink, topic):
        since = accept(lander.index, lander.offsets)
        row = {"sink": lander.sink.name, "topic": topic, "since": since}
        _tell(
            as_json, row, lambda row: f"{row['sink']} {row['topic']}: the present topic's hours begin at {row['since']}"
        )


@app.command()
def rewrite(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    first: FromOption = None,
    last: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """Land complete hours once more from Kafka, in place of what was landed."""
    wanted = _range(first, last)
    if wanted is None:
        raise ConfigurationError("rewrite needs --from H and --to H: it never rewrites everything by default")
    for lander in _landings(_load(config), sink, topic):
        for hour in hours.span(*wanted):
            _tell(as_json, rows.hour_row(lander.topic, lander.rewrite(hour)), rows.hour_line)


@app.command()
def clean(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove what dead writers left behind."""
    from s3lake.commit.clean import clean as cleaned

    for lander in _landings(_load(config), sink, topic):
        for one in cleaned(lander.index, now_ms=int(time.time() * 1000), dry_run=dry_run):
            row = {"sink": lander.sink.name, "topic": lander.topic, **asdict(one), "done": not dry_run}
            _tell(as_json, row, rows.cleaned_line)


def _load(path: Path | None) -> Config:
    return native.load(path or native.default_path())


def _landings(config: Config, sink: str | None = None, topic: str | None = None) -> Iterator["Landing"]:
    """Every sink and topic that the options leave."""
    from s3lake.orchestration.resources import S3, KafkaResource, SparkResource, landing
    from s3lake.orchestration.topics import topics_of

    known = [one.name for one in config.sinks]
    if sink is not None and sink not in known:
        raise ConfigurationError(f"--sink {sink}: there is no such sink; the configuration has {', '.join(known)}")
    found = [(config.sink(name), one) for name, topics in topics_of(config).items() for one in topics]
    routes = [(route, one) for route, one in found if sink in (None, route.name) and topic in (None, one)]
    if not routes:
        topics = ", ".join(sorted({one for route, one in found if sink in (None, route.name)})) or "none yet"
        wanted = f"--topic {topic}: " if topic else ""
        raise ConfigurationError(f"{wanted}no such topic is landed; those of {sink or 'all sinks'} are: {topics}")
    kafka, s3, spark = KafkaResource(config.kafka), S3(config.s3), SparkResource(config.spark)
    for route, one in routes:
        yield landing(route, one, kafka, s3, spark)


def _verified(
    config: Config, landings: Sequence["Landing"], wanted: tuple[str, str] | None, *, quiet: bool
) -> list["Report"]:
    from s3lake.verify import verify as compare

    total = sum(_offsets(lander, wanted) for lander in landings)
    with _progress("verify", total, quiet=quiet) as progress:
        done = 0
        reports = []
        for lander in landings:
            begun = done

            def seen(offsets: int, _: int, begun: int = begun) -> None:
                nonlocal done
                done = begun + offsets
                progress(done)

            reports.append(
                compare(
                    lander.sink,
                    lander.topic,
                    lander.index,
                    config.kafka.bootstrap_servers,
                    config.kafka.properties,
                    wanted,
                    seen,
                )
            )
        progress(total)
    return reports


def _offsets(lander: "Landing", wanted: tuple[str, str] | None) -> int:
    tiles = (tile for tile in lander.index.tiles() if wanted is None or wanted[0] <= tile.hour <= wanted[1])
    return sum(span.committed - span.start for tile in tiles for span in tile.partitions.values())


def _connections(config: Config) -> Iterator[tuple[str, Callable[[], object]]]:
    from s3lake.kafka.client import KafkaOffsets
    from s3lake.store.probe import probe
    from s3lake.store.s3 import S3Connection, S3Store

    offsets = KafkaOffsets(config.kafka.bootstrap_servers, config.kafka.properties)
    yield f"kafka {config.kafka.bootstrap_servers}", offsets.topics
    connection = S3Connection.of(config.s3)
    for sink in config.sinks:
        store = S3Store(connection, sink.bucket)
        yield (
            f"bucket {sink.bucket} of sink {sink.name}",
            functools.partial(_some_key, store, f"{sink.index.prefix}/{sink.name}/"),
        )
        if sink.exactly_once:
            place = f"{sink.index.prefix}/{sink.name}"
            yield (
                f"conditional writes in bucket {sink.bucket} of sink {sink.name}",
                functools.partial(probe, store, place),
            )


def _some_key(store: "Store", prefix: str) -> str | None:
    # A listing knows a bucket that is not there; the head of an object does not tell which of both is missing.
    return next(iter(store.list(prefix)), None)


def _outcome(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except S3LakeError as error:
        return str(error)
    return "ok"


def _range(first: str | None, last: str | None) -> tuple[str, str] | None:
    if first is None and last is None:
        return None
    try:
        for hour in (first, last):
            if hour is not None:
                hours.parse(hour)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    if first is None or last is None:
        only = first or last
        raise ConfigurationError(f"give both --from and --to; for one hour --from {only} --to {only}")
    if first > last:
        raise ConfigurationError(f"--from {first} is later than --to {last}")
    return first, last


def _list_differences(report: "Report", as_json: bool) -> None:
    for one in report.differences:
        row = {
            "difference": one.kind,
            "topic": one.topic,
            "hour": one.hour,
            "partition": one.partition,
            "detail": one.detail,
        }
        _tell(as_json, row, lambda _, one=one: str(one))  # type: ignore[misc]


def _tell(as_json: bool, row: Mapping[str, Any], line: Callable[[Any], str]) -> None:
    if as_json:
        _print_json(row)
    else:
        _out.print(line(row), markup=False)


def _say(as_json: bool, text: str) -> None:
    if not as_json:
        _out.print(text, markup=False)


def _print_json(row: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def _fail(error: S3LakeError, code: int) -> NoReturn:
    _err.print(f"{type(error).__name__}: {error}", markup=False)
    raise SystemExit(code)


@contextmanager
def _progress(what: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, a line now and then elsewhere."""
    if quiet:
        yield lambda _: None
    elif _err.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=_err, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        said = 0.0

        def line(done: int) -> None:
            nonlocal said
            if time.monotonic() - said > 5 or done >= total:
                said = time.monotonic()
                _err.print(f"{what}: {done} of {total}", markup=False)

        yield line
