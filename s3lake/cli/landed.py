"""Commands about hours that were landed: land them once more, clean up after."""

from dataclasses import asdict
from typing import Annotated

import typer

from s3lake import hours, rows
from s3lake.cli.options import (
    ConfigArgument,
    FromOption,
    JsonOption,
    SinkOption,
    ToOption,
    TopicOption,
    in_order,
    load,
    routes,
)
from s3lake.cli.terminal import say, tell
from s3lake.errors import ConfigurationError


def rewrite(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    first: FromOption = None,
    last: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """Land complete hours once more from Kafka, in place of what was landed."""
    in_order(first, last)
    if first is None or last is None:
        raise ConfigurationError("rewrite needs --from H and --to H: it never rewrites everything by default")
    for lander in routes(load(config), sink, topic):
        for hour in hours.span(first, last):
            tell(as_json, rows.hour_row(lander.topic, lander.rewrite(hour)), rows.hour_line)


def clean(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove what dead writers left behind."""
    found = 0
    for lander in routes(load(config), sink, topic):
        for one in lander.clean(dry_run=dry_run):
            found += 1
            row = {"sink": lander.sink.name, "topic": lander.topic, **asdict(one), "done": not dry_run}
            tell(as_json, row, rows.cleaned_line)
    if not found:
        say(as_json, "nothing to remove")
