"""A real Apache Kafka, one node, for the demo and the tests."""

import base64
import json
import os
import re
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from s3lake.demo.process import GuardedProcess, Launch, Service, free_port, start_server
from s3lake.errors import KafkaUnavailableError
from s3lake.land.spark import jars

_NODE_ID = 1

_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": str(_NODE_ID),
    "controller.listener.names": "CONTROLLER",
    "auto.create.topics.enable": "false",
    # One node cannot replicate, and every partition of an internal topic costs files and start-up time.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # Sample events carry timestamps of hours past, tests some of years past and ahead: take them and keep them.
    "log.retention.ms": "-1",
    "log.message.timestamp.before.max.ms": str(2**63 - 1),
    "log.message.timestamp.after.max.ms": str(2**63 - 1),
    "group.initial.rebalance.delay.ms": "0",
    # Compaction is to be seen within seconds, and its default buffer of 128 MB does not fit the heap.
    "log.initial.task.delay.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
}
# Half of a cold start is the JVM's own work; on few cores the serial collector is the one that stays out of the way.
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-Djava.awt.headless=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


class EmbeddedKafka(Service):
    """A single-node Kafka (KRaft) on 127.0.0.1 that ends with this process, even after SIGKILL."""

    def __init__(self, process: GuardedProcess, port: int, directory: Path) -> None:
        self._process = process
        self.bootstrap_servers = f"127.0.0.1:{port}"
        self.directory = directory

    @classmethod
    def start(cls, directory: Path | None = None, settings: Mapping[str, str] | None = None) -> "EmbeddedKafka":
        """Start a broker and wait until it answers.

        Args:
            directory: keeps the topics for a later start; None for a temporary directory.
            settings: the broker's settings, in addition to ours; so are `listeners`.

        Raises:
            ConfigurationError: no suitable Java was found.
            KafkaUnavailableError: the broker did not start; the message ends with its log.
        """
        java, class_path = jars.find_java(), ":".join(map(str, jars.kafka_broker_jars()))
        command = [str(java), *_JVM, "-cp", class_path]

        def prepare(ports: list[int], home: Path) -> Launch:
            (port, controller_port), config = ports, home / "server.properties"
            home.mkdir(parents=True, exist_ok=True)
            config.write_text(_properties(home / "data", port, controller_port, settings or {}), encoding="ascii")
            cluster_id, clients = _format(command, config, home / "data"), list[AdminClient]()
            broker = [*command, "kafka.Kafka", str(config)]
            environment = jars.make_java_environment(os.environ)
            return Launch(broker, lambda _: _answers(port, cluster_id, clients), environment)

        directory = None if directory is None else directory.absolute()
        process, ports, home = start_server(
            "kafka", prepare, KafkaUnavailableError, ports=2, home=directory, grace_s=8.0
        )
        return cls(process, ports[0], home)


def _properties(data: Path, port: int, controller_port: int, more: Mapping[str, str]) -> str:
    listeners = [f"PLAINTEXT://127.0.0.1:{port}", f"CONTROLLER://127.0.0.1:{controller_port}"]
    settings = {
        **_SETTINGS,
        **more,
        "controller.quorum.voters": f"{_NODE_ID}@127.0.0.1:{controller_port}",
        "listeners": ",".join([*listeners, *filter(None, [more.get("listeners")])]),
        # Java reads this file as Latin-1, with escapes like JSON's.
        "log.dirs": json.dumps(str(data))[1:-1],
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _format(command: list[str], config: Path, data: Path) -> str:
    """Prepare the data directory unless an earlier start did. Return the id of its cluster."""
    meta = data / "meta.properties"
    if meta.exists():
        cluster = re.search(r"^cluster\.id=(\S+)$", meta.read_text(encoding="latin-1"), re.MULTILINE)
        if cluster:
            return cluster[1]
    # The prefix: an id that begins with a dash would be an option of the tool.
    cluster_id = "s" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")[1:]
    tool = [*command, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(config)]
    run = subprocess.run(
        tool,
        env=jars.make_java_environment(os.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if run.returncode != 0:
        output = (run.stdout + run.stderr)[-4000:].strip()
        raise KafkaUnavailableError(f"Kafka could not prepare the directory {data}. Its output:\n{output}")
    return cluster_id


def _answers(port: int, cluster_id: str, clients: list[AdminClient]) -> bool:
    """Return whether the broker answers; `clients` keeps the client for the next time."""
    if not clients:
        # Only once it listens: a client that is refused waits longer before every new try.
        if free_port(port):
            return False
        clients.append(AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0}))
    try:
        metadata = clients[0].list_topics(timeout=1.0)
    except KafkaException:
        return False
    # The id shows that it is this broker, not another process that took the port.
    return metadata.cluster_id == cluster_id and bool(metadata.brokers)
