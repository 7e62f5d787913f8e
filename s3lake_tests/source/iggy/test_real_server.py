"""Topics of a real server, where one is installed: landed and verified over each transport that can be had so."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_iggy import SendMessage

from s3lake import hours
from s3lake.config import native
from s3lake.demo.process import free_port, free_ports, spawn
from s3lake.index.store.memory import MemoryStore
from s3lake.land.hour.landing import land
from s3lake.source.iggy.iggy_connection import IggyConnection
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.processes import served
from s3lake_tests.source.iggy.server import PASSWORD, USER
from s3lake_tests.source.inline import inline, verified

_PROGRAM = shutil.which("iggy-server")

pytestmark = [
    pytest.mark.long,
    pytest.mark.slow("Iggy's server, which no package registry has"),
    pytest.mark.skipif(
        _PROGRAM is None,
        reason="iggy-server is not on PATH: registries have Iggy's clients and its command line, and no server",
    ),
]


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """A server's listeners, by their transports."""
    home: Path = tmp_path_factory.mktemp("iggy")
    ports = dict(zip(("tcp", "http"), free_ports(2), strict=True))
    listening = {transport: f"127.0.0.1:{port}" for transport, port in ports.items()}
    settings = {f"IGGY_{transport.upper()}_ADDRESS": address for transport, address in listening.items()}
    settings |= {
        "IGGY_QUIC_ENABLED": "false",
        "IGGY_WEBSOCKET_ENABLED": "false",
        "IGGY_SYSTEM_PATH": str(home / "data"),
    }
    settings |= {"IGGY_ROOT_USERNAME": USER, "IGGY_ROOT_PASSWORD": PASSWORD}
    with spawn([str(_PROGRAM)], home / "log", {**os.environ, **settings}) as process:
        served(process, lambda: not any(map(free_port, ports.values())))
        yield listening


@pytest.mark.parametrize("transport", ["tcp", "http"])
def test_sent_messages_land_once_and_are_verified(addresses: dict[str, str], transport: str) -> None:
    server = IggyConnection(addresses[transport], transport, USER, PASSWORD, timeout_s=PATIENCE_S)
    messages = [SendMessage(b'{"id": %d}' % number) for number in range(1_000)]
    server.ask("a new stream", lambda client: client.create_stream(transport))
    server.ask("a new topic", lambda client: client.create_topic(transport, "orders", 2))
    first = hours.key_of_ms(round(time.time() * 1000))
    for partition in (0, 1):
        server.ask("a log", lambda client, to=partition: client.send_messages(transport, "orders", to, messages))
    config = native.load_text(
        f"source: {{type: iggy, address: '{server.address}', transport: {transport}, username: {USER}, "
        f"password: {PASSWORD}}}\n"
        f"sinks: [{{name: events, topics: [{transport}.orders], bucket: lake, start: {first}}}]\n",
        "f",
    )
    last = hours.key_of_ms(round(time.time() * 1000))
    target = inline(config, f"{transport}.orders", MemoryStore("lake"), lambda: hours.end_ms(last) + hours.HOUR_MS)
    land(target, list(hours.span(first, last)))
    assert verified(config, target).clean
    manifests = [manifest for hour in hours.span(first, last) for manifest in target.report(hour).manifests]
    assert sum(file.records for manifest in manifests for file in manifest.files) == 2_000
