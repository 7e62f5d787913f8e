"""The command that writes a first configuration: by questions, or from a connector's file."""

import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from s3lake import hours
from s3lake.cli.configuration import as_native
from s3lake.cli.options import DialectOption, NameOption, ObservedOption, StrictOption, WorkerOption, beside
from s3lake.cli.terminal import err, say
from s3lake.config import native
from s3lake.errors import ConfigurationError

_QUESTIONS = (
    ("Kafka's bootstrap servers", "localhost:9092"),
    ("Topics, with commas between them", "orders"),
    ("Bucket", "lake"),
    ("Prefix in the bucket (empty for none)", ""),
    ("Address of the S3 API (empty for AWS)", ""),
    ("Format: avro, csv, json, parquet or text", "parquet"),
    ("First hour to land, UTC", ""),
)


def init(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path("s3lake.yaml"),
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="CONFIG", help="A connector's file or address, instead of questions."),
    ] = None,
    dialect: DialectOption = None,
    name: NameOption = None,
    worker: WorkerOption = None,
    strict: StrictOption = False,
    observed: ObservedOption = False,
) -> None:
    """Write a first configuration: by questions, or --from the file of a connector that runs today."""
    if path.exists():
        raise ConfigurationError(f"{path} is there already: give another FILE, or move it away")
    if source is None:
        try:
            text = _by_questions()
        except typer.Abort:
            raise ConfigurationError("standard input ended before every question was answered") from None
        native.loads(text, str(path))  # refuses what cannot be, before anything is written
    else:
        text = as_native(source, dialect, beside(name, worker, strict, observed))
    path.write_text(text)
    say(False, f"{path} is written. Next: s3lake check --connect {path}; export S3LAKE_CONFIG={path}; dagster dev")


def _by_questions() -> str:
    if not sys.stdin.isatty():
        err.print("not a terminal: answers are read from standard input, a line each", markup=False)
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
