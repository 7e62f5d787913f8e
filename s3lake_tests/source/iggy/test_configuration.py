"""The settings of Iggy in a configuration, and the errors of wrong ones."""

import pytest

from s3lake.config import native
from s3lake.errors import ConfigurationError
from s3lake.source.iggy.iggy_connection import IggyConnection
from s3lake.source.iggy.offsets import IggySource
from s3lake.source.sources import open_source

SINK = "{name: events, topics: [shop.orders], bucket: lake, start: 2026-11-20T00}"


def text(source: str, sink: str = SINK) -> str:
    return f"source: {source}\nsinks:\n  - {sink}\n"


def refusal(source: str, sink: str = SINK) -> str:
    with pytest.raises(ConfigurationError) as caught:
        native.load_text(text(source, sink), "f")
    return str(caught.value)


IGGY = "{type: iggy, address: 'iggy:8090', username: lake, password: hunter2}"


def test_a_server_is_opened_as_it_is_written() -> None:
    source = open_source(native.load_text(text(IGGY), "f"), 3.0)
    assert isinstance(source, IggySource)
    assert source.place == "iggy iggy:8090"
    assert source.connection == IggyConnection("iggy:8090", "tcp", "lake", "hunter2", timeout_s=3.0)


def test_its_secrets_are_printed_nowhere() -> None:
    config = native.load_text(text(IGGY), "f")
    printed, variables = native.write_native(config)
    shown = [
        printed,
        repr(config),
        repr(open_source(config)),
        repr(open_source(config).reader),
        refusal("{type: iggy, address: 'a', password: hunter2}"),
    ]
    assert "hunter2" not in "".join(shown)
    assert list(variables.values()) == ["source.password"]


def test_a_source_that_is_written_again_is_read_as_the_same() -> None:
    config = native.load_text(text("{type: iggy, address: 'iggy:3000', transport: http}"), "f")
    assert native.load_text(native.write_native(config)[0], "f") == config


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{type: kafka}", "Kafka has a place of its own"),
        ("{type: iggy}", "address is missing"),
        ("{type: iggy, address: 'lake@iggy:8090'}", "write HOST:PORT, without a user"),
        ("{type: iggy, address: 'iggy:8090', username: lake}", "username and password belong together"),
        ("{type: iggy, address: 'iggy:3000', transport: http, token: x}", "source.token: replaces username"),
        ("{type: iggy, address: 'iggy:8090', transport: udp}", "source.transport"),
        ("{type: iggy, address: 'iggy:8090', domain: x}", "source.domain: is of an encrypted connection"),
        ("{type: iggy, address: 'iggy:8090', options: {a: 1}}", "source.options: are of plugins"),
        ("{type: other, address: 'iggy:8090'}", "source.address: is of type iggy"),
        (f"{IGGY}\nkafka: {{bootstrap_servers: 'k:9092'}}", "topics are in one place: take out source, or kafka"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_path(source: str, message: str) -> None:
    assert message in refusal(source)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("shop.orders", "orders", "sinks[0].topics[0]: 'orders' does not name a stream of Iggy: write STREAM.TOPIC"),
        (
            "}",
            ", errors: {tolerance: all, dead_letter_topic: {name: dead}}}",
            "a dead letter topic needs Kafka",
        ),
    ],
)
def test_a_sink_of_kafka_alone_is_refused(old: str, new: str, message: str) -> None:
    assert message in refusal(IGGY, SINK.replace(old, new))


def test_a_source_that_is_not_installed_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"no installed package brings 'other'; there are iggy\."):
        open_source(native.load_text(text("{type: other}"), "f"))
