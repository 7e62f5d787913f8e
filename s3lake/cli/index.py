"""Commands about the index."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from s3lake.cli import rows
from s3lake.cli.options import ConfigArgument, JsonOption, SinkOption, TopicOption, in_order, load, routes
from s3lake.cli.terminal import print_json, print_table, say, tell
from s3lake.errors import ConfigurationError

app = typer.Typer(no_args_is_help=True, help="Look at the index, and mend it knowingly.")


@app.command("show")
def index_show(
    config: ConfigArgument = None, sink: SinkOption = None, topic: TopicOption = None, as_json: JsonOption = False
) -> None:
    """Tiles, commits, what is pending and what is garbage, and up to which hour all are sealed."""
    from s3lake.commit.index import TopicHead
    from s3lake.commit.sealing import Sealing
    from s3lake.plan.stamps import find_notices

    for lander in routes(load(config), sink, topic):
        found, tiles = lander.index.head(), list(lander.index.tiles())
        sealing = Sealing.of(lander.index, found[0] if found else TopicHead(), tiles)
        upto = sealing.upto(lander.sink.start)
        if as_json:
            name = {"sink": lander.sink.name, "topic": lander.topic}
            for tile in tiles:
                row = rows.tile_row(tile, sealed=not sealing.flaw(tile.hour))
                print_json({**name, **row, "sealed_up_to": upto})
            continue
        if not tiles:
            say(as_json, f"{lander.sink.name}: {lander.topic}: nothing is landed yet")
            continue
        title = f"{lander.sink.name}: {lander.topic}, sealed up to {upto or 'no hour'}"
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for column in ("hour", "state", "offsets", "landed", "commits", "pending", "garbage", "expired"):
            table.add_column(column, no_wrap=True)
        for tile in tiles:
            table.add_row(*rows.tile_cells(tile, sealed=not sealing.flaw(tile.hour)))
        print_table(table)
        for tile in tiles:
            for notice in find_notices(tile):
                say(as_json, f"notice: {lander.sink.name} {lander.topic} {tile.hour}: {notice}")


@app.command("rollback")
def index_rollback(
    sink: Annotated[str, typer.Option(help="The sink.")],
    topic: Annotated[str, typer.Option(help="The topic.")],
    hour: Annotated[str, typer.Option(metavar="H", help="The hour whose commit is pending, as 2026-11-20T05 (UTC).")],
    config: ConfigArgument = None,
    give_up_expired: Annotated[
        bool, typer.Option("--give-up-expired", help="Also where Kafka has expired some of its records.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Give up a pending commit that no run can finish; its records are read from Kafka again, under other names."""
    from s3lake.commit.rollback import roll_back

    in_order(hour, hour)
    for lander in routes(load(config), sink, topic):
        done = roll_back(lander.index, lander.offsets, hour, give_up_expired=give_up_expired)
        row = {"sink": sink, "topic": topic, "hour": hour, **asdict(done)}
        tell(
            as_json,
            row,
            (
                "{sink} {topic} {hour}: commit {commit} is rolled back; the next run "
                "reads its {offsets} offsets again, {expired} of them have expired"
            ).format_map,
        )


@app.command("accept")
def index_accept(
    topic: Annotated[str, typer.Option(help="The topic that was deleted and created again.")],
    config: ConfigArgument = None,
    sink: SinkOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a topic that was deleted and created again; what the former one had not landed is given up."""
    from s3lake.commit.recreated import accept

    refused: list[str] = []
    accepted = False
    for lander in routes(load(config), sink, topic):
        try:
            since = accept(lander.index, lander.offsets)
        except ConfigurationError as error:  # one that died had begun with some of the sinks
            refused.append(f"{lander.sink.name}: {error}")
            continue
        accepted = True
        row = {"sink": lander.sink.name, "topic": topic, "since": since}
        tell(as_json, row, "{sink} {topic}: the present topic's hours begin at {since}".format_map)
    if not accepted:
        raise ConfigurationError("\n".join(refused))
    for line in refused:
        say(as_json, line)
