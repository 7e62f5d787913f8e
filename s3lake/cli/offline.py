"""Commands that work without Kafka and S3: a first configuration, native YAML, previews and tests."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from s3lake import hours
from s3lake.cli.check import find_suspicious_settings
from s3lake.cli.output import DIFFERENCES, INPUT, emit, err, out, print_json, print_text, write
from s3lake.cli.request import Request, print_notices, start_spark
from s3lake.errors import ConfigurationError
from s3lake.text.quantities import format_count

_QUESTIONS = (
    ("Kafka's bootstrap servers", "localhost:9092"),
    ("Topics, with commas between them", "orders"),
    ("Bucket", "lake"),
    ("Prefix in the bucket (empty for none)", ""),
    ("Address of the S3 API (empty for AWS)", ""),
    ("Format: avro, csv, json, parquet or text", "parquet"),
    ("First hour to land, UTC", ""),
)
_COLOURS = {"-": "red", "+": "green"}


def run_init(
    request: Request,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path("s3lake.yaml"),
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="CONFIG", help="Convert a connector's file or address, instead of questions."),
    ] = None,
) -> None:
    """Write a first configuration: from answers to questions, or from a connector's file."""
    if path.exists():
        raise ConfigurationError(f"{path} exists already: give another FILE, or move it away")
    if not path.parent.is_dir():  # before the questions
        raise ConfigurationError(f"{path.parent} is not a directory: create it, or give another FILE")
    if source is None:
        try:
            text = _ask_questions()
        except typer.Abort:
            raise ConfigurationError("standard input ended before every question was answered") from None
        from s3lake.config import native

        native.load_text(text, str(path))  # refuses what is not valid before anything is written
    else:
        text = _to_native(Request(source, request.dialect, request.name, request.worker))
    path.write_text(text)
    print_text(
        False,
        f"{path} is written. Next: s3lake check --connect {path}; export S3LAKE_CONFIG={path}; "
        "dagster dev -m s3lake.definitions",
    )


def _ask_questions() -> str:
    if not sys.stdin.isatty():
        err.print("not a terminal: answers are read from standard input, one per line")
    now = hours.key_of_ms(hours.now_ms())
    servers, topics, bucket, prefix, endpoint, file_format, start = (
        str(typer.prompt(question, default=default or (now if question.startswith("First hour") else ""))).strip()
        for question, default in _QUESTIONS
    )
    sink = {
        "name": "events",
        "topics": [topic.strip() for topic in topics.split(",") if topic.strip()],
        "bucket": bucket,
        **({"prefix": prefix} if prefix else {}),
        "start": start,
        "format": {"type": file_format},
        "errors": {"tolerance": "all"},
    }
    document = {
        "kafka": {"bootstrap_servers": servers},
        **({"s3": {"endpoint_url": endpoint}} if endpoint else {}),
        "sinks": [sink],
    }
    import yaml

    comment = "# `s3lake check` shows every setting, docs/configure.md explains them; secrets go into ${VARIABLES}.\n"
    return comment + yaml.safe_dump(document, sort_keys=False)


def run_convert(request: Request) -> None:
    """Print the configuration as native YAML; secrets become environment variables."""
    write(_to_native(request))


def _to_native(request: Request) -> str:
    from s3lake.config import native

    loaded = request.read(to_land=False)
    print_notices(loaded)
    text, variables = native.write_native(loaded.config, loaded.references)
    for variable, place in variables.items():
        err.print(f"notice: {place} is secret: set {variable} where this file is read")
    return text


def run_preview(
    request: Request,
    records: Annotated[
        Path, typer.Option("--records", metavar="FILE", help="JSON lines: topic, partition, offset, key, value …")
    ],
    below: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write the objects below DIR.")] = None,
) -> None:
    """Show the objects that sample records would produce."""
    from s3lake.land.preview import preview as preview_records
    from s3lake.land.preview.record_lines import read_record_lines

    config = request.load(to_land=False)
    of_topic: dict[str, list[Any]] = {}
    for record in read_record_lines(records):
        of_topic.setdefault(record.topic, []).append(record)
    routes = [(sink, topic) for sink in request.sinks(config) for topic in sorted(of_topic) if sink.reads(topic)]
    for topic in sorted(of_topic.keys() - {topic for _, topic in routes}):
        err.print(f"{records}: no sink reads topic {topic!r}")
    if of_topic and not routes:
        raise typer.Exit(INPUT)
    if not of_topic:
        print_text(request.as_json, f"nothing to preview: {records} has no record")
    if any(sink.sql for sink, _ in routes):
        start_spark(config.spark, quiet=request.as_json)
    results = [(sink, preview_records(sink, topic, of_topic[topic], spark=config.spark)) for sink, topic in routes]
    several = len({sink.bucket for sink, _ in results}) > 1
    objects = [(sink, object) for sink, result in results for object in result.objects]
    for sink, object in sorted(objects, key=lambda pair: pair[1].file.key):
        file = object.file
        row = {
            "key": file.key,
            "topic": object.topic,
            "partition": file.partition,
            "first_offset": file.first_offset,
            "last_offset": file.last_offset,
            "records": file.records,
            "bytes": file.bytes,
        }
        emit(request.as_json, row, _format_object)
        if below is not None:
            _write_below(below / sink.bucket if several else below, file.key, object.body)
    if results and not objects and not any(result.refusals for _, result in results):
        print_text(request.as_json, f"no object: every record of {records} is skipped")
    for _, result in results:
        for refusal in result.refusals:
            sys.stderr.write(json.dumps(asdict(refusal)) + "\n")
    if any(result.failed for _, result in results):
        raise typer.Exit(DIFFERENCES)


def _format_object(row: Mapping[str, Any]) -> str:
    counts = f"{format_count(row['records'], 'records')}, {format_count(row['bytes'], 'bytes')}"
    return "{key}  {topic}[{partition}] offsets {first_offset} to {last_offset}, ".format_map(row) + counts


def _write_below(directory: Path, key: str, body: bytes) -> None:
    path = directory / key.lstrip("/")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    except OSError as error:
        raise ConfigurationError(f"--out {directory}: {path} cannot be written: {error.strerror}") from None


def run_test(
    request: Request,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Records in NAME.jsonl, results in NAME.expected.json.")
    ],
    write_expected: Annotated[bool, typer.Option("--write", help="Write what they become as expected.")] = False,
) -> None:
    """Feed a configuration records and compare everything that they become with what is expected.

    Needs neither Kafka nor S3. The exit code is 1 if anything differs. A file `notices.expected.json` has the
    configuration's notices.
    """
    from s3lake.land.preview.record_lines import read_record_lines
    from s3lake.land.preview.snapshots import build_snapshot, compare_snapshots, format_snapshot

    as_json, loaded = request.as_json, request.read(to_land=False)
    inputs = sorted(directory.glob("*.jsonl"))
    if not inputs:
        raise ConfigurationError(f"{directory} has no records: write some, one JSON object a line, into NAME.jsonl")
    # Without their places, which every line that is added to a file changes.
    notices = [": ".join(filter(None, (notice.place.key, notice.message))) for notice in loaded.notices]
    if any(sink.sql for sink in loaded.config.sinks):
        start_spark(loaded.config.spark, quiet=as_json)
    snapshots: dict[Path, Any] = {}
    for path in inputs:
        snapshots[path] = build_snapshot(loaded.config.sinks, read_record_lines(path), loaded.config.spark)
    if write_expected or (directory / "notices.expected.json").exists():
        snapshots[directory / "notices"] = [*notices, *find_suspicious_settings(loaded.config)]
    differing = 0
    for path, snapshot in snapshots.items():
        expected, actual = path.with_suffix(".expected.json"), format_snapshot(snapshot)
        if write_expected:
            expected.write_text(actual, "utf-8")
        try:
            diff = compare_snapshots(expected.read_text("utf-8") if expected.exists() else "", actual)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"{expected} is not JSON: {error}. Correct it, or write it with --write") from None
        differing += bool(diff)
        if as_json:
            print_json({"case": path.stem, "expected": str(expected), "passed": not diff, "differences": diff})
            continue
        out.print(f"differs: {path.stem} ({expected})" if diff else f"ok: {path.stem}")
        for line in diff:
            out.print(Text(f"  {line}", style=_COLOURS.get(line[0], "")))
    if differing:
        print_text(as_json, f"{differing} of {len(snapshots)} differ (- expected, + actual); --write accepts them all")
        raise typer.Exit(DIFFERENCES)
    print_text(as_json, f"{len(snapshots)} {'written' if write_expected else 'compared, all as expected'}")
