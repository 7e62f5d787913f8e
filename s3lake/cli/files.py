"""Commands that work without Kafka and S3: a first configuration, native YAML, previews and tests."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml
from rich.text import Text

from s3lake import hours
from s3lake.cli.check import find_suspicious_settings
from s3lake.cli.output import DIFFERENCES, INPUT, emit, err, out, print_json, print_text, write
from s3lake.cli.request import Request, print_notices
from s3lake.config import native
from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    from s3lake.land.preview.trial import Difference

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


def init(
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
    if source is None:
        try:
            text = _ask_questions()
        except typer.Abort:
            raise ConfigurationError("standard input ended before every question was answered") from None
        native.loads(text, str(path))  # refuses what is not valid before anything is written
    else:
        text = _to_native(Request(source, request.dialect, request.name, request.worker))
    path.write_text(text)
    print_text(
        False, f"{path} is written. Next: s3lake check --connect {path}; export S3LAKE_CONFIG={path}; dagster dev"
    )


def _ask_questions() -> str:
    if not sys.stdin.isatty():
        err.print("not a terminal: answers are read from standard input, one per line", markup=False)
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
    comment = "# `s3lake check` shows every setting, docs/configure.md explains them; secrets go into ${VARIABLES}.\n"
    return comment + yaml.safe_dump(document, sort_keys=False)


def convert(request: Request) -> None:
    """Print the configuration as native YAML; secrets become environment variables."""
    write(_to_native(request))


def _to_native(request: Request) -> str:
    loaded = request.read(to_land=False)
    print_notices(loaded)
    text, variables, unkept = native.write_native(loaded.config, loaded.references)
    for variable, place in variables.items():
        err.print(f"notice: {place} is secret: set {variable} where this file is read", markup=False)
    for notice in unkept:
        err.print(f"notice: {notice}", markup=False)
    return text


def preview(
    request: Request,
    records: Annotated[
        Path, typer.Option("--records", metavar="FILE", help="JSON lines: topic, partition, offset, key, value …")
    ],
    below: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write the objects below DIR.")] = None,
) -> None:
    """Show the objects that sample records would produce."""
    from s3lake.land.preview import preview as preview_records
    from s3lake.land.preview.records import read

    config = request.load(to_land=False)
    of_topic: dict[str, list[Any]] = {}
    for record in read(records):
        of_topic.setdefault(record.topic, []).append(record)
    routes = [(sink, topic) for sink in request.sinks(config) for topic in sorted(of_topic) if sink.reads(topic)]
    for topic in sorted(of_topic.keys() - {topic for _, topic in routes}):
        err.print(f"{records}: no sink reads topic {topic!r}", markup=False)
    if of_topic and not routes:
        raise typer.Exit(INPUT)
    if not of_topic:
        print_text(request.as_json, f"nothing to preview: {records} has no record")
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
        line = "{key}  {topic}[{partition}] offsets {first_offset} to {last_offset}, {records} records, {bytes} bytes"
        emit(request.as_json, row, line.format_map)
        if below is not None:
            _write_below(below / sink.bucket if several else below, file.key, object.body)
    for _, result in results:
        for refusal in result.refusals:
            sys.stderr.write(json.dumps(asdict(refusal)) + "\n")
    if any(result.failed for _, result in results):
        raise typer.Exit(DIFFERENCES)


def _write_below(directory: Path, key: str, body: bytes) -> None:
    path = directory / key.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)


def test(
    request: Request,
    cases: Annotated[Path, typer.Argument(metavar="CASES", help="A YAML file: records, and what is expected of them.")],
) -> None:
    """Feed a configuration records and compare keys, rows and dead letters.

    Needs neither Kafka nor S3. The exit code is 1 if anything differs.
    """
    from s3lake.land.preview import trial
    from s3lake.land.preview.cases import read

    as_json, loaded, file = request.as_json, request.read(to_land=False), read(cases)
    # Without their places, which every line that is added to a file changes.
    texts = (": ".join(filter(None, (notice.place.key, notice.message))) for notice in loaded.notices)
    failed = 0
    if file.notices is not None:
        difference = trial.of_notices(file.notices, [*texts, *find_suspicious_settings(loaded.config)])
        failed += _print_case(as_json, "the configuration", str(cases), [difference] if difference else [])
    for case in file.cases:
        outcome = trial.tried(case, loaded.config.sinks, loaded.config.spark)
        failed += _print_case(as_json, case.name, str(case.place), trial.differences(case.expect, outcome))
    if failed:
        print_text(as_json, f"{failed} of {len(file.cases)} cases differ (- expected, + actual)")
        raise typer.Exit(DIFFERENCES)
    print_text(as_json, f"{len(file.cases)} cases, all as expected")


def _print_case(as_json: bool, name: str, place: str, differences: Sequence["Difference"]) -> bool:
    """Print the result of a case. Return whether it differs."""
    if as_json:
        parts = [{"what": each.what, "expected": each.expected, "present": each.present} for each in differences]
        print_json({"case": name, "place": place, "passed": not differences, "differences": parts})
        return bool(differences)
    out.print(f"differs: {name} ({place})" if differences else f"ok: {name}", markup=False)
    for difference in differences:
        out.print(f"  {difference.what}:", markup=False)
        for line in difference.lines():
            out.print(Text(f"    {line}", style=_COLOURS.get(line[0], "")))
    return bool(differences)
