"""The code server's command: Dagster's own with runs that begin at once."""

import os
import socket
from typing import Annotated

import typer

from s3lake.cli.options import ConfigArgument, load
from s3lake.config.load import LOCATION
from s3lake.errors import ConfigurationError


def code_server(
    config: ConfigArgument = None,
    module: Annotated[
        str, typer.Option("--module-name", "-m", metavar="MODULE", help="Whose definitions.")
    ] = "s3lake.definitions",
    host: Annotated[
        str, typer.Option(help="The address to listen on. Dagster's code server asks nobody for a name.")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(min=1, max=65535, help="As the workspace says.")] = 4000,
) -> None:
    """A code server of Dagster in the foreground, whose runs are forked from a process that has imported it all."""
    from s3lake.orchestration.code_server import serve

    if config is not None:
        load(config)  # what is wrong in it is said here, and not only in the UI
        os.environ[LOCATION] = config
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise ConfigurationError(
            f"--host {host} --port {port}: cannot listen there: {error.strerror or error}"
        ) from None
    serve(module, host, port)
