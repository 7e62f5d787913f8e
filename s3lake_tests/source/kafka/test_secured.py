"""One configuration for planning and reading, whatever the listener asks for: passwords, tokens, certificates."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import dagster as dg
import pytest
import yaml

from s3lake.config import native
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.errors import KafkaUnavailableError
from s3lake.index.plan.hour_grid import Grid
from s3lake.lake.verify import verify_against
from s3lake.lake.verify.kafka_log import KafkaLog
from s3lake.land.topic.open_topic_sink import open_topic_sink
from s3lake.orchestration.build import build_definitions
from s3lake.source.kafka import reader
from s3lake.source.kafka.offsets import KafkaOffsets
from s3lake.source.kafka.reader import KafkaReader
from s3lake.source.record_batches import OffsetRange
from s3lake_tests.kit.lake import START, Lake
from s3lake_tests.source.kafka.secured import MODULES, QUOTED, TO_LAND, Secured, login, started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def secured(jvm: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:  # noqa: ARG001 (it needs Java)
    with started(tmp_path_factory.mktemp("secured")) as broker:
        yield broker


Way = tuple[str, Callable[[Secured], dict[str, str]]]
"""A listener, and the properties of a client for it."""


def over_tls(listener: str, **properties: str) -> Way:
    written = {name.replace("_", "."): value for name, value in properties.items()}
    return listener, lambda secured: {
        "security.protocol": "SSL",
        **secured.authority,
        **{name: value.format(files=secured.files) for name, value in written.items()},
    }


def with_password(mechanism: str) -> Way:
    return "SASLTLS", lambda secured: {"security.protocol": "SASL_SSL", **secured.authority, **login(mechanism)}


JAAS = f'{MODULES}.scram.ScramLoginModule required username="me" password="{QUOTED}";'
WAYS: dict[str, Way] = {
    **{mechanism: with_password(mechanism) for mechanism in ("PLAIN", "SCRAM-SHA-256")},
    "SCRAM-SHA-512 in Java's words": (
        "SASL",
        lambda _: {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": JAAS,
        },
    ),
    "OAUTHBEARER": ("OIDC", lambda secured: {"security.protocol": "SASL_SSL", **secured.authority, **secured.token}),
    "TLS": over_tls("TLS"),
    "mTLS with a locked key": over_tls(
        "MUTUAL",
        ssl_certificate_location="{files}/client.crt",
        ssl_key_location="{files}/client.locked.key",
        ssl_key_password="hunter2",
    ),
    "mTLS with one file in Java's words": over_tls(
        "MUTUAL", ssl_keystore_type="PEM", ssl_keystore_location="{files}/client.pem"
    ),
}
"""Others are translated: `test_client_properties.py`."""


@pytest.mark.slow("another way to log in to a real broker")
@pytest.mark.parametrize("way", WAYS)
def test_the_sensor_asks_for_a_run_which_lands_through_spark(
    secured: Secured, s3_server: EmbeddedS3, spark: "SparkSession", way: str
) -> None:
    listener, properties = WAYS[way]
    lake = Lake(secured.broker, s3_server, lambda: spark)
    written = yaml.safe_load(lake.config_text(f"name: events, topics: ['{TO_LAND}']"))
    written["kafka"] = {"bootstrap_servers": secured.server(listener), "properties": properties(secured)}
    text = yaml.safe_dump(written)
    config = native.load_text(text, "secured.yaml")
    definitions = build_definitions(config, resources={"spark": SimpleNamespace(spark_session=spark)})
    sensor = definitions.get_repository_def().get_sensor_def(f"kafka_{TO_LAND}".replace("-", "_"))
    with (
        dg.DagsterInstance.ephemeral() as instance,
        dg.build_sensor_context(instance=instance, definitions=definitions) as context,
    ):
        (request,) = sensor.evaluate_tick(context).run_requests
        job = definitions.resolve_job_def("land_events")
        run = job.execute_in_process(
            tags=request.tags,
            run_config=request.run_config,
            partition_key=request.partition_key,
            instance=instance,
        )
        shown = "".join(event.to_json() for event in instance.all_logs(run.run_id))
    assert run.success
    sink = config.sinks[0]
    made = open_topic_sink(config, sink, TO_LAND)
    grid = Grid.from_sink(sink, made.clock(), START, START)
    with KafkaLog(secured.server(listener), properties(secured)) as log:
        report = verify_against(sink, made.index, log, grid)
    assert (report.landed, report.differences) == (10, ())
    assert "hunter2" not in shown


_WAITS_S = 12.0  # all are asked at once, and a provider of tokens answers late on a busy machine

SASL_SSL = {"security.protocol": "SASL_SSL"}
UNSIGNED = {
    "sasl.mechanism": "OAUTHBEARER",
    "enable.sasl.oauthbearer.unsecure.jwt": "true",
    "sasl.oauthbearer.config": "principal=hunter2",
}
WRONG_SECRET = {"sasl.oauthbearer.client.secret": "wrong-hunter2"}
REFUSALS: dict[str, tuple[str, Callable[[Secured], dict[str, str]], str]] = {
    "a wrong password": (
        "SASL",
        lambda _: {"security.protocol": "SASL_PLAINTEXT", **login("PLAIN"), "sasl.password": "wrong-hunter2"},
        "Authentication failed",
    ),
    "a wrong secret of the provider's": (
        "OIDC",
        lambda secured: {**SASL_SSL, **secured.authority, **secured.token, **WRONG_SECRET},
        "invalid_client",
    ),
    "a token that the provider did not sign": (
        "OIDC",
        lambda secured: {**SASL_SSL, **secured.authority, **UNSIGNED},
        "invalid_token",
    ),
    "an unknown authority": ("TLS", lambda _: {"security.protocol": "SSL"}, "certificate"),
    "another authority": (*over_tls("TLS", ssl_ca_location="{files}/stranger.pem"), "certificate"),
    "a broker's certificate that has expired": (*over_tls("EXPIRED"), "certificate"),
    "a client's certificate that has expired": (
        *over_tls(
            "MUTUAL",
            ssl_certificate_location="{files}/late.crt",
            ssl_key_location="{files}/late.locked.key",
            ssl_key_password="hunter2",
        ),
        "certificate",
    ),
    "no certificate of the client": (*over_tls("MUTUAL"), "certificate"),
    # An answer of TLS looks like silence to who does not speak it.
    "no TLS where it is spoken": ("TLS", lambda _: {"security.protocol": "PLAINTEXT"}, ""),
}
"""The listener, how it is asked, and the reason in the error."""


@pytest.fixture(scope="module")
def refusals(secured: Secured) -> dict[str, tuple[list[str], list[str]]]:
    """What planning and reading report of each, and when they are asked again; all at once, for each waits."""

    def planning(listener: str, properties: dict[str, str]) -> str:
        with pytest.raises(KafkaUnavailableError) as raised:
            KafkaOffsets(secured.server(listener), properties, timeout_s=reader.SILENCE_S).log_ranges("secured")
        return str(raised.value)

    def reading(listener: str, properties: dict[str, str]) -> str:
        brokers = KafkaReader(secured.server(listener), properties)
        with pytest.raises(KafkaUnavailableError) as raised:
            list(brokers.batches("secured", [OffsetRange(0, 0, 1)], ("value",)))
        return str(raised.value)

    def asked(ask: Callable[[str, dict[str, str]], str]) -> Iterator[str]:
        cases = [(listener, properties(secured)) for listener, properties, _ in REFUSALS.values()]
        return threads.map(ask, *zip(*cases, strict=True))

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2 * len(REFUSALS)) as threads:
        rounds = []
        for waits_s in (_WAITS_S, 1.0):
            patch.setattr(reader, "SILENCE_S", waits_s)
            plans, reads = asked(planning), asked(reading)
            rounds.append(list(zip(plans, reads, strict=True)))
    return {
        name: ([plan, again], [read, later])
        for name, (plan, read), (again, later) in zip(REFUSALS, *rounds, strict=True)
    }


@pytest.mark.slow("another way to log in to a real broker")
@pytest.mark.parametrize("name", REFUSALS)
def test_planning_and_reading_report_the_reason_and_no_secret(
    secured: Secured, refusals: dict[str, tuple[list[str], list[str]]], name: str
) -> None:
    listener, _, reason = REFUSALS[name]
    planning, reading = refusals[name]
    assert all(f"Kafka at {secured.server(listener)} did not tell" in message for message in planning)
    assert all(f"Kafka at {secured.server(listener)} did not give" in message for message in reading)
    for message in planning + reading:
        assert "hunter2" not in message
        assert re.search(reason, message)
        assert "kafka.properties fit their listener: security.protocol, user and password, certificates" in message
