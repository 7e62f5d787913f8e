"""The command that tells Prometheus how far every sink is."""

import functools
import re
import signal
import threading
from typing import Annotated

import typer

from s3lake.cli.options import ConfigArgument, SinkOption, TopicOption, load, routes
from s3lake.cli.terminal import err, write
from s3lake.errors import ConfigurationError

_TILES_ONCE = 48
_ONCE_S = 120.0
"""How many of each topic, and how long at most, where nobody comes again who could go on from what was seen."""


def metrics(
    config: ConfigArgument = None,
    sink: SinkOption = None,
    topic: TopicOption = None,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve them there, for example 127.0.0.1:9108.")
    ] = None,
) -> None:
    """Lag, completeness and volumes of every sink and topic, as Prometheus reads them: once, or served."""
    from prometheus_client import CollectorRegistry, generate_latest, start_http_server

    from s3lake.land.metrics import Scrape

    where = None if listen is None else _address(listen)
    loaded = load(config)
    list(routes(loaded, sink, topic, hasty=True))  # what is wrong in the options is told now, by the exit code
    registry = CollectorRegistry()
    look = functools.partial(routes, loaded, sink, topic, hasty=True)
    registry.register(Scrape(look) if where else Scrape(look, _TILES_ONCE, _ONCE_S))
    if where is None:
        write(generate_latest(registry).decode())
        return
    host, port = where
    try:
        server, _ = start_http_server(port, host, registry)
    except OSError as error:
        raise ConfigurationError(f"--listen {listen}: cannot listen there: {error.strerror or error}") from None
    shown = f"[{host}]" if ":" in host else host
    err.print(f"metrics: http://{shown}:{server.server_address[1]}/metrics", markup=False)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        ended.wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.shutdown()
        server.server_close()


def _address(listen: str) -> tuple[str, int]:
    address = re.fullmatch(r"\[?([^\[\]]+)\]?:(\d{1,5})", listen)
    if address is None or int(address[2]) > 65_535:
        raise ConfigurationError(f"--listen {listen}: write HOST:PORT, for example 127.0.0.1:9108")
    return address[1], int(address[2])
