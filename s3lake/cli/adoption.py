"""The command that takes over from a connector."""

from dataclasses import replace
from typing import Annotated, Literal

import typer

from s3lake import hours
from s3lake.cli import rows
from s3lake.cli.options import (
    ConfigArgument,
    DialectOption,
    JsonOption,
    ObservedOption,
    SinkOption,
    StrictOption,
    TopicOption,
    WorkerOption,
    beside,
    notices,
    routes,
)
from s3lake.cli.terminal import err, say, tell
from s3lake.config import load as configuration
from s3lake.config.connectors.observed import KEY, OBSERVED
from s3lake.config.draft import Connector, Loaded
from s3lake.errors import ConfigurationError

Trust = Literal["index", "group", "objects"]


def adopt(
    config: ConfigArgument = None,
    dialect: DialectOption = None,
    worker: WorkerOption = None,
    strict: StrictOption = False,
    observed: ObservedOption = False,
    sink: SinkOption = None,
    topic: TopicOption = None,
    connector: Annotated[
        str | None, typer.Option(metavar="NAME", help="The connector's name, where the file does not say it.")
    ] = None,
    trust: Annotated[
        Trust | None, typer.Option(help="Which source to believe where they contradict: index, group or objects.")
    ] = None,
    accept_expired: Annotated[
        bool, typer.Option("--accept-expired", help="Go on though Kafka has expired some of what was not landed.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what was found and would be done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Continue the bucket of a connector that was stopped: no gap, no duplicate."""
    from s3lake.land.adopt import Adoption, KafkaGroups, first_tile, naming_of, table
    from s3lake.land.adopt import adopt as adopted

    environment = beside(connector, worker, strict, observed)
    loaded = configuration.loaded(config, dialect, environment)
    notices(loaded)
    _propose(loaded, configuration.loaded(config, dialect, {**environment, OBSERVED: "true"}))
    if loaded.config.kafka is None:
        raise ConfigurationError("adopt takes over from connectors of Kafka Connect, and source is not Kafka")
    groups = KafkaGroups(loaded.config.kafka.bootstrap_servers, loaded.config.kafka.properties)
    landers = [(lander, first_tile(lander.index) is not None) for lander in routes(loaded.config, sink, topic)]
    all_begun = all(begun for _, begun in landers)
    for lander, begun in landers:
        if begun and not all_begun:  # one that died had adopted some of the topics
            say(as_json, f"{lander.sink.name} {lander.topic}: has tiles already, as what was adopted has; it stays")
            continue
        own = loaded.connectors.get(lander.sink.name, Connector(""))
        own = replace(own, name=connector or own.name)
        if not own.name:
            raise ConfigurationError(
                f"sink {lander.sink.name}: the configuration does not name the connector to take over from; give its "
                "name with --connector, or the connector's own file as CONFIG"
            )
        outcome = adopted(
            Adoption(own, naming_of(lander.sink, lenses=own.lenses)),
            lander.index,
            lander.offsets,
            groups,
            first_hour=lander.sink.start,
            now_ms=hours.now_ms(),
            trust=trust,
            accept_expired=accept_expired,
            dry_run=dry_run,
        )
        if not as_json:
            for line in table(outcome.evidence):
                say(as_json, line)
        tell(as_json, rows.adopted_row(lander.sink.name, lander.topic, outcome), rows.adopted_line)


def _propose(loaded: Loaded, observed: Loaded) -> None:
    """Tell what the connector does otherwise than its document says, where that is not what will be done."""
    here, there = (dict(rows.settings(one.config.model_dump(mode="json"))) for one in (loaded, observed))
    changes = [
        f"{'.'.join(map(str, path))} {rows.shown(value)}" for path, value in there.items() if here.get(path) != value
    ]
    if changes:
        message = (
            f"notice: the connector itself does otherwise than its document says: {', '.join(changes)}. To go on as it "
            f"did, write {KEY}=true into its file, or give --observed"
        )
        err.print(message, markup=False)
