"""A real Apache Kafka, one node, for the demo and the tests."""

import base64
import json
import re
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from s3lake.demo.process import GuardedProcess, Service, free_ports, spawn
from s3lake.errors import KafkaUnavailableError
from s3lake.spark import jars

_ATTEMPTS = 5
_START_TIMEOUT_S = 90.0
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
            settings: of the broker, in addition to ours; so are `listeners`.

        Raises:
            ConfigurationError: no suitable Java was found.
            KafkaUnavailableError: the broker did not start; the message ends with its log.
        """
        java, class_path = jars.find_java(), ":".join(map(str, jars.kafka_broker_jars()))
        command = [str(java), *_JVM, "-cp", class_path]
        for _ in range(_ATTEMPTS):
            started = _start_once(command, directory, settings or {})
            if started is not None:
                return cls(*started)
        raise KafkaUnavailableError(
            f"Kafka found its ports on 127.0.0.1 taken {_ATTEMPTS} times in a row. Stop what opens ports that fast."
        )


def _start_once(
    command: list[str], directory: Path | None, more: Mapping[str, str]
) -> tuple[GuardedProcess, int, Path] | None:
    """Start on two free ports. Return None if another process took one of them meanwhile."""
    port, controller_port = free_ports(2)
    home = Path(tempfile.mkdtemp(prefix="s3lake-kafka-")) if directory is None else directory.absolute()
    temporary = home if directory is None else None
    try:
        home.mkdir(parents=True, exist_ok=True)
        config = home / "server.properties"
        config.write_text(_properties(home / "data", port, controller_port, more), encoding="ascii")
        cluster_id = _format(command, config, home / "data")
        process = spawn([*command, "kafka.Kafka", config], home / "kafka.log", remove=temporary, grace_s=8.0)
    except BaseException:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    try:
        _wait_until_ready(process, port, cluster_id)
    except BaseException as error:
        log = process.log(last_bytes=1_000_000)
        process.stop()
        if isinstance(error, KafkaUnavailableError) and "Address already in use" in log:
            return None
        raise
    return process, port, home


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
    run = subprocess.run(tool, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
    if run.returncode != 0:
        output = (run.stdout + run.stderr)[-4000:].strip()
        raise KafkaUnavailableError(f"Kafka could not prepare the directory {data}. It said:\n{output}")
    return cluster_id


def _wait_until_ready(process: GuardedProcess, port: int, cluster_id: str) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    admin: AdminClient | None = None
    while process.running and time.monotonic() < deadline:
        if admin is None and _accepts(port):
            # Only now: a client that is refused waits longer before every new try.
            admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
        if admin is not None and _answers(admin, cluster_id):
            return
        time.sleep(0.02)
    what = "did not answer in time" if process.running else f"ended with exit code {process.returncode}"
    raise KafkaUnavailableError(f"Kafka on 127.0.0.1:{port} {what}. The end of its log:\n{process.log()}")


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _answers(admin: AdminClient, cluster_id: str) -> bool:
    try:
        metadata = admin.list_topics(timeout=1.0)
    except KafkaException:
        return False
    # The id shows that it is this broker, not another process that took the port.
    return metadata.cluster_id == cluster_id and bool(metadata.brokers)
