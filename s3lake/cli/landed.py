"""Commands that land hours: for the first time, once more, and clean up after."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from s3lake import hours
from s3lake.cli import rows
from s3lake.cli.options import (
    ConfigArgument,
    FromOption,
    JsonOption,
    SinkOption,
    ToOption,
    TopicOption,
    in_order,
    load,
    no_hours,
    routes,
)
from s3lake.cli.terminal import FAILED, Progressed, err, progress_bar, say, tell
from s3lake.commit.index import Manifest
from s3lake.errors import ConfigurationError, IncompleteError, S3LakeError
from s3lake.land.observer import LandedHour, Logged

if TYPE_CHECKING:
    from s3lake.land.landing import Landing
    from s3lake.verify import Grid


@dataclass
class _Printed(Logged):
    """Shows how far a topic is, and prints every hour as soon as it is done."""

    as_json: bool
    progress: Progressed
    offsets: int = 0
    read: int = 0

    def planned(self, hour: str, offsets: int, batches: int) -> None:
        super().planned(hour, offsets, batches)
        self.offsets += offsets
        self.progress(self.read, self.offsets)

    def committed(self, manifest: Manifest) -> None:
        super().committed(manifest)
        self.read += sum(read.end - read.start for read in manifest.partitions.values())
        self.progress(self.read, self.offsets)

    def done(self, landed: LandedHour) -> None:
        with self.progress.aside():
            tell(self.as_json, rows.hour_row(self.sink, self.topic, landed), rows.hour_line)


@contextmanager
def _shown(lander: "Landing", doing: str, as_json: bool) -> Iterator[None]:
    """What `lander` does is shown while it does it."""
    with progress_bar(f"{doing} {lander.sink.name} {lander.topic}: offsets", 0, quiet=as_json) as progress:
        lander.observer = _Printed(lander.sink.name, lander.topic, as_json, progress)
        yield


def land(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    first: FromOption = None,
    last: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """Land what Kafka has, without Dagster: for cron, CI and debugging, beside its runs as well.

    Without --from every hour since the sink's start, or the bucket's adoption, that is not complete; without --to up to
    the one under way. A topic that fails keeps no other from being landed; the exit code is 3 then.
    """
    from s3lake.verify import Grid

    in_order(first, last)
    landers, now_ms = list(routes(load(config), sink, topic)), hours.now_ms()
    grids = [Grid.of(lander.sink, now_ms, first, last) for lander in landers]
    if not any(grid.due() for grid in grids):
        raise no_hours(landers, grids[0].present)
    landed = failed = 0
    for lander, grid in zip(landers, grids, strict=True):
        try:
            if incomplete := _incomplete(lander, grid):
                with _shown(lander, "land", as_json):
                    landed += len(lander.land(incomplete))
        except S3LakeError as error:
            failed += 1
            err.print(f"{lander.sink.name} {lander.topic}: {type(error).__name__}: {error}", markup=False)
    if failed:
        raise typer.Exit(FAILED)
    if not landed:
        say(as_json, "nothing to land: every hour of this range is complete")


def _incomplete(lander: "Landing", grid: "Grid") -> Sequence[str]:
    """The hours that the index does not call complete.

    Who asks for none by name means none that a connector landed before the bucket was adopted, nor an earlier topic's.
    """
    from s3lake.objects.readback import completeness

    head = lander.index.head() if grid.first is None else None
    due = grid.due(head[0].since if head else None)
    return [hour for hour, tile in completeness.tiles(lander.index, due).items() if tile is None or not tile.complete]


def rewrite(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    first: FromOption = None,
    last: ToOption = None,
    as_json: JsonOption = False,
) -> None:
    """Land complete hours once more from Kafka, in place of what was landed.

    A topic of which one of them is not landed keeps no other from being rewritten; the exit code is 3 then.
    """
    in_order(first, last)
    if first is None or last is None:
        raise ConfigurationError("rewrite needs --from H and --to H: it never rewrites everything by default")
    refused: list[tuple[str, IncompleteError]] = []
    rewritten = 0
    for lander in routes(load(config), sink, topic):
        try:
            with _shown(lander, "rewrite", as_json):
                for hour in hours.span(first, last):
                    lander.rewrite(hour)
                    rewritten += 1
        except IncompleteError as error:
            refused.append((lander.sink.name, error))
    if refused and not rewritten:
        raise refused[0][1]
    for name, refusal in refused:
        err.print(f"{name} {refusal}", markup=False)
    if refused:
        raise typer.Exit(FAILED)


def clean(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove what dead writers left behind."""
    removed = 0
    for lander in routes(load(config), sink, topic):
        for leftover in lander.clean(dry_run=dry_run):
            removed += 1
            row = {"sink": lander.sink.name, "topic": lander.topic, **asdict(leftover), "done": not dry_run}
            tell(as_json, row, rows.cleaned_line)
    if not removed:
        say(as_json, "nothing to remove")
