"""The Spark Connect server's command: warm sessions for runs that would start cold ones."""

from typing import Annotated

import typer

from s3lake import sink
from s3lake.cli.options import ConfigArgument, DialectOption, JsonOption, load
from s3lake.cli.terminal import say, tell
from s3lake.errors import ConfigurationError
from s3lake.land.spark import session
from s3lake.land.spark.shared import PORT
from s3lake.text.quantities import seconds_of


def spark(
    config: ConfigArgument = None,
    master: Annotated[
        str | None, typer.Option(help="In front of which cluster; this machine's cores without it.", show_default=False)
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on. Spark Connect asks nobody for a name.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for one that is free.")] = PORT,
    idle: Annotated[
        str | None, typer.Option(metavar="30m", help="End after so long without work.", show_default=False)
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Start none, but ask the one at sc://HOST:PORT whether it serves."),
    ] = None,
    dialect: DialectOption = None,
    as_json: JsonOption = False,
) -> None:
    """A Spark Connect server in the foreground, which spark.master: sc://HOST:PORT uses; memory and conf by CONFIG."""
    if check is not None:
        session(sink.Spark(master=check if "://" in check else f"sc://{check}"))
        tell(as_json, {"serves": check}, "{serves} serves".format_map)
        return
    from s3lake.land.spark.server import serve

    settings = load(config, dialect, to_land=False).spark if config else sink.Spark()
    behind = master or (settings.master if not settings.master.startswith("sc://") else "local[*]")
    if behind.startswith("sc://"):
        raise ConfigurationError(f"--master {behind}: a server stands in front of a cluster or of this machine's cores")

    def ready(address: str, cores: int) -> None:
        tell(as_json, {"serves": address, "cores": cores}, "{serves} serves, {cores} cores".format_map)

    say(as_json, f"starting Spark, {behind}")
    serve(settings.model_copy(update={"master": behind}), host, port, _seconds(idle), ready)


def _seconds(idle: str | None) -> float | None:
    try:
        return None if idle is None else seconds_of(idle)
    except ValueError as error:
        raise ConfigurationError(f"--idle {idle}: {error}") from None
