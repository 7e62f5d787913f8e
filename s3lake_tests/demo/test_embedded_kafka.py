"""The embedded Kafka is a real broker that leaves nothing behind."""

import socket
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.errors import KafkaUnavailableError
from s3lake_tests.kit.cost import PATIENCE_S
from s3lake_tests.kit.topics import create_topic, read_topic

pytestmark = pytest.mark.usefixtures("jvm")


def port_of(kafka: EmbeddedKafka) -> int:
    return int(kafka.bootstrap_servers.rpartition(":")[2])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize(("name", "ms"), [("year-2001", 978_307_200_000), ("year-2100", 4_102_444_800_000)])
def test_timestamps_far_in_the_past_or_future_are_accepted(kafka: EmbeddedKafka, name: str, ms: int) -> None:
    create_topic(kafka.bootstrap_servers, name)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(name, b"x", timestamp=ms)
    assert producer.flush(PATIENCE_S) == 0
    (record,) = read_topic(kafka.bootstrap_servers, name)
    assert record.timestamp()[1] == ms


@pytest.mark.slow("starts a broker of its own")
def test_a_temporary_broker_leaves_no_process_port_or_file() -> None:
    with EmbeddedKafka.start() as kafka:
        guard = psutil.Process(kafka.pid)
        (broker,) = guard.children()
        assert (kafka.directory / "data" / "meta.properties").exists()
    assert not kafka.directory.exists()
    assert not listens(port_of(kafka))
    assert not guard.is_running()
    assert not broker.is_running()


@pytest.mark.slow("starts a broker of its own")
def test_a_given_directory_keeps_the_topics_for_the_next_start(tmp_path: Path) -> None:
    with EmbeddedKafka.start(tmp_path / "kafka") as kafka:
        create_topic(kafka.bootstrap_servers, "kept")
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        producer.produce("kept", b"still here")
        producer.flush(PATIENCE_S)
    with EmbeddedKafka.start(tmp_path / "kafka") as kafka:
        assert [record.value() for record in read_topic(kafka.bootstrap_servers, "kept")] == [b"still here"]


@pytest.mark.slow("starts a broker of its own")
def test_a_directory_of_any_name_serves_in_the_locale_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    with EmbeddedKafka.start(tmp_path / 'Ünï cödé\'s (100%20) "dir" $x') as kafka:
        assert (kafka.directory / "data" / "__cluster_metadata-0").is_dir()


@pytest.mark.slow("starts a broker of its own")
def test_a_broker_that_does_not_start_reports_the_reason(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "meta.properties").write_text("version=1\ncluster.id=of-another-node\nnode.id=99\n")
    with pytest.raises(
        KafkaUnavailableError, match=r"ended with exit code 1\. The end of its log:(.|\n)*Stored node id 99"
    ):
        EmbeddedKafka.start(tmp_path)


@pytest.mark.slow("starts a broker of its own")
def test_a_directory_that_cannot_be_prepared_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the directory belongs")
    with pytest.raises(
        KafkaUnavailableError, match=rf"could not prepare the directory {tmp_path}/data\. Its output:\n."
    ):
        EmbeddedKafka.start(tmp_path)
