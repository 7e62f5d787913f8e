"""A command of ours from the same beginning, again and again, and what stands in the bucket when it was ended."""

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psutil
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from s3lake import hours
from s3lake.config import native
from s3lake_tests.kit.topics import read_topic
from trials import connector
from trials.armed import ArmedKafka, ArmedS3
from trials.catalog import Catalog, Tables
from trials.checker import INDEX, Bucket, Left, check
from trials.operations import (
    ADOPTED,
    AGE,
    CATALOG,
    FIRST,
    INTO,
    PARTITIONS,
    RECORDS,
    SINK,
    TOPIC,
    Operation,
    adopted,
    records,
)
from trials.production import ARROWS_S3, BUCKET, CONNECT, ROOT, Production, cleaned, production
from trials.truth import Truth

_LONGEST_S = 400.0
UNAVAILABLE = 3
"""The exit code of a command that something unavailable was in the way of."""
_IMPORTED = [
    *(
        "s3lake.cli",
        "s3lake.land.hour.landing",
        "s3lake.land.change.replay",
        "s3lake.land.adopt",
        "s3lake.index.store.s3_store",
    ),
    *(
        "s3lake.source.kafka.offsets",
        "s3lake.lake.verify",
        "s3lake.lake.readback.spark_frame",
        "s3lake.lake.table.iceberg",
    ),
    *("s3lake.land.change.compact", "s3lake.land.change.erase", "s3lake.land.change.restore"),
    "s3lake.land.topic.open_topic_sink",
    *("boto3", "pandas", "pyarrow", "duckdb", "tenacity", "pyspark.sql.connect.session", "pyiceberg.catalog.sql"),
    *("trials.rehearsal", "trials.warm"),
]
"""By the process that commands are forked from: the imports of each would take longer than its work."""


@dataclass
class Row:
    """A line of the table.

    Attributes:
        points: moments that came: the process was killed, or a request got its answer.
        left: uploads that `clean` did not end.
        of_tables: those of a table's metadata, which are pyiceberg's.
        broken: files that a scan of the whole table did not find, whenever it was scanned.
        otherwise: files that the table lists and the index does not, or the other way round.
        failed: commands that did not end well.
        codes: exit codes of commands that got another answer.
    """

    name: str
    requests: int = 0
    points: int = 0
    runs: int = 0
    lost: int = 0
    doubled: int = 0
    unlisted: int = 0
    left: int = 0
    of_tables: int = 0
    broken: int = 0
    otherwise: int = 0
    failed: int = 0
    codes: Counter[int] = field(default_factory=Counter)

    @property
    def clean(self) -> bool:
        wrong = self.lost or self.doubled or self.unlisted or self.left or self.broken or self.otherwise or self.failed
        return not wrong

    def add(self, other: "Row") -> None:
        for name in ("runs", "lost", "doubled", "unlisted", "left", "of_tables", "broken", "otherwise", "failed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.codes += other.codes


class Rehearsal:
    """The servers, the operation that is on it, and the process of its command."""

    def __init__(self, made: Production, s3: ArmedS3, kafka: ArmedKafka, truth: Truth) -> None:
        self.s3, self.kafka = s3, kafka
        self._made, self._truth = made, truth
        keys = made.s3.endpoint_url, made.s3.access_key_id, made.s3.secret_access_key
        self._bucket = Bucket(*keys, BUCKET)
        (server,) = psutil.Process(made.s3.pid).children()
        self._data = Path(server.cmdline()[-1])
        self._written = yaml.safe_load((made.home / "s3lake.yaml").read_text())
        self.catalog = Catalog(made.home / "catalog.db")
        self._tables = Tables.of(self.catalog, self._bucket, made.s3)
        self._start = self._data.parent / "start"
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(_IMPORTED)
        self._victim: BaseProcess | None = None
        self._into = ""
        self._admin = AdminClient({"bootstrap.servers": made.kafka.bootstrap_servers, "log_level": 0})

    def prepare(self, operation: Operation) -> None:
        """Land what the operation begins with, and keep the bucket as it is then."""
        shutil.rmtree(self._data / BUCKET)
        self._made.s3.create_bucket(BUCKET)
        self.catalog.path.unlink(missing_ok=True)
        self._catalog_then.unlink(missing_ok=True)
        self.s3.arm()
        self.kafka.arm()
        if operation.landed:  # through the proxies, where it is then remembered that the store was tried
            code = _ended(self._started(operation, ("land", "--to", operation.landed), landing=True, proxied=True))
            if code:
                raise SystemExit(f"what {operation.name} begins with was not landed:\n{self._log.read_text()[-4000:]}")
        else:
            self._leave_to_adopt()
        shutil.rmtree(self._start, ignore_errors=True)
        shutil.copytree(self._data / BUCKET, self._start)
        if self.catalog.path.exists():
            shutil.copy(self.catalog.path, self._catalog_then)

    def begin(self, operation: Operation) -> None:
        """All is as it was prepared, and the command starts, through the proxies."""
        shutil.rmtree(self._data / BUCKET)
        shutil.copytree(self._start, self._data / BUCKET)
        self.catalog.bring_back()
        self.catalog.path.unlink(missing_ok=True)
        if self._catalog_then.exists():
            shutil.copy(self._catalog_then, self.catalog.path)
        if INTO in operation.words:
            self._into = f"into-{uuid.uuid4().hex}"
            topic = NewTopic(self._into, PARTITIONS, 1)
            self._admin.create_topics([topic])[self._into].result()
        self._victim = self._started(operation, operation.words, proxied=True)

    def strike(self) -> None:
        """What is run now dies."""
        while self._victim is None or self._victim.pid is None:
            time.sleep(0.001)
        os.kill(self._victim.pid, signal.SIGKILL)

    def ended(self) -> tuple[int, str]:
        """The exit code of the command and what it has said; the proxies let nothing of it through any more."""
        assert self._victim is not None
        code = _ended(self._victim)
        self._victim = None
        self.s3.end()
        return code, self._log.read_text(errors="replace")[-1500:]

    def judged(self, operation: Operation) -> Row:
        """A new process goes on, `clean` runs two days later, and the checker looks: what is wrong."""
        row = Row(operation.name, runs=1)
        if operation.has_table and (code := self._gone_on_without_catalog(operation, row)) not in (0, UNAVAILABLE):
            return self._failed(row, code)
        code = _ended(self._started(operation, operation.words, proxied=False))
        if code not in operation.codes:
            return self._failed(row, code)
        if operation.then and (code := _ended(self._started(operation, operation.then, proxied=False))):
            return self._failed(row, code)
        self._check_gone(operation, row)
        config = native.load_text(self._config(operation, landing=False, proxied=False).read_text(), "s3lake.yaml")
        cleaned(config.sinks[0], TOPIC, config)
        self._check(operation, row)
        return row

    def _gone_on_without_catalog(self, operation: Operation, row: Row) -> int:
        """A new process goes on while the catalog is away still: its exit code; the table can be scanned all along."""
        self._scan(row)
        code = 0
        if self.catalog.is_away:
            code = _ended(self._started(operation, operation.words, proxied=False))
            self._scan(row)
            self.catalog.bring_back()
        return code

    def _scan(self, row: Row) -> None:
        broken = self._tables.broken()
        row.broken += len(broken)
        if broken:
            print("a scan of the table does not find", broken, file=sys.stderr, flush=True)

    def _check(self, operation: Operation, row: Row) -> None:
        left = Left(TOPIC, adopted()) if operation.name == "adopt" else None
        kept = {k: v for k, v in self._truth.seen.items() if not k.startswith(operation.gone)}
        wanted = replace(self._truth, seen=kept)
        uploads = self._bucket.uploads()
        row.of_tables = sum(key.startswith(".tables/") for key in uploads.values())
        row.left = len(uploads) - row.of_tables
        if operation.name == "restore":
            self._check_restored(row)
            return
        if operation.name == "retention":
            wanted.poison = {place for place in wanted.poison if place[2] >= RECORDS}
        found = check(self._bucket, SINK, [TOPIC], wanted, left)
        row.lost, row.doubled = row.lost + found.lost, found.duplicated + found.made_up
        row.unlisted += len(found.unlisted) + len(found.absent)
        if not row.clean:
            print(found, uploads, file=sys.stderr, flush=True)
        if operation.has_table or "table" in operation.sink:
            self._scan(row)
            otherwise = [*self._tables.differences(SINK, [TOPIC], "lake.{topic}")]
            row.otherwise += len(otherwise)
            if otherwise:
                print(otherwise, file=sys.stderr, flush=True)

    def _check_gone(self, operation: Operation, row: Row) -> None:
        """What it takes out is nowhere any more, before anybody cleans, and the index says how much that was."""
        keys = [key for key in self._bucket.objects() if operation.gone and not key.startswith(".tables/")]
        bodies = {key: self._bucket.body(key) for key in keys}
        row.unlisted += sum(name.encode() in body for name in operation.gone for body in bodies.values())
        if operation.name == "retention":
            root = f"{INDEX}/{SINK}/{TOPIC}/{FIRST}"
            manifests = {key: json.loads(body) for key, body in bodies.items() if key.startswith(f"{root}/")}
            listed = [manifests[f"{root}/{commit}.json"] for commit in json.loads(bodies[f"{root}.json"])["commits"]]
            gone = sum(read["erased"] for manifest in listed for read in manifest["partitions"].values())
            row.lost += abs(PARTITIONS * RECORDS - gone)
            # An attempt that died early leaves a manifest of its own, which names no object and is `clean`'s.
            row.unlisted += sum(bool(manifest["files"]) for manifest in manifests.values())
        if not row.clean:
            print(f"{operation.gone} is left: {row}", sorted(bodies), file=sys.stderr, flush=True)

    def _check_restored(self, row: Row) -> None:
        wanted = Counter(records())
        held = Counter(_consumed(self._made.kafka.bootstrap_servers, self._into))
        row.lost, row.doubled = (wanted - held).total(), (held - wanted).total()
        self._admin.delete_topics([self._into])[self._into].result()

    def _failed(self, row: Row, code: int) -> Row:
        row.failed = 1
        print(f"exit code {code}:\n{self._log.read_text(errors='replace')[-3000:]}", file=sys.stderr, flush=True)
        return row

    def _started(
        self, operation: Operation, words: Sequence[str], *, proxied: bool, landing: bool = False
    ) -> BaseProcess:
        config = self._config(operation, landing=landing, proxied=proxied)
        age_s = (time.time() * 1000 - hours.end_ms(FIRST) - hours.HOUR_MS / 2) / 1000
        arguments = [word.replace(INTO, self._into).replace(AGE, f"{age_s:.0f}s") for word in words]
        process = self._processes.Process(target=_command, args=([*arguments, str(config)], self._log))
        process.start()
        return process

    @property
    def _catalog_then(self) -> Path:
        return self._made.home / "catalog-then.db"

    @property
    def _log(self) -> Path:
        return self._made.home / "command.log"

    def _config(self, operation: Operation, *, landing: bool, proxied: bool) -> Path:
        """The configuration, and its sink, of this moment."""
        written = yaml.safe_load(yaml.safe_dump(self._written))
        if proxied:
            written["s3"]["endpoint_url"] = self.s3.url
            written["kafka"]["bootstrap_servers"] = self.kafka.bootstrap_servers
        sink = {"name": SINK, "topics": [TOPIC], "bucket": BUCKET, **operation.settings(landing=landing)}
        written["sinks"] = [sink]
        path = self._made.home / f"{'proxied' if proxied else 'direct'}.yaml"
        path.write_text(yaml.safe_dump(written).replace(CATALOG, self.catalog.uri))
        return path

    def _leave_to_adopt(self) -> None:
        connector.leave(self._made.s3, BUCKET, adopted())
        ends = dict.fromkeys(range(PARTITIONS), ADOPTED)
        connector.commit(self._made.kafka.bootstrap_servers, SINK, TOPIC, ends)


@contextlib.contextmanager
def rehearsal(home: Path) -> Iterator[Rehearsal]:
    """All servers are up, and the records are in the topic."""
    os.environ["TMPDIR"] = str(home)  # what is killed tidies up nothing
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    os.environ |= ARROWS_S3
    # The process that commands are forked from has no other way to this package.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    directory = home / "home"
    directory.mkdir()
    with (
        production(directory, [TOPIC], PARTITIONS, {"start": FIRST}, connect=True, clock=None) as made,
        ArmedS3(made.s3.endpoint_url) as s3,
        ArmedKafka(made.kafka.bootstrap_servers) as kafka,
    ):
        made.start(CONNECT)
        yield Rehearsal(made, s3, kafka, _produced(made.kafka.bootstrap_servers))


def _produced(servers: str) -> Truth:
    """The records are in the topic, and were read."""
    truth = Truth(servers, (TOPIC,))
    truth.start()
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for record in records():
        producer.produce(TOPIC, record.value, record.key, record.partition, timestamp=record.stamp_ms)
    producer.flush(60)
    while sum(truth.reached.values()) < len(list(records())):
        time.sleep(0.05)
    truth.stop()
    return truth


def _consumed(servers: str, topic: str) -> Iterator[Any]:
    """What a reader of committed records gets."""
    for message in read_topic(servers, topic):
        yield message.partition(), message.key(), message.value(), message.timestamp()[1]


def _command(words: Sequence[str], log: Path) -> None:
    """In a process of its own."""
    with log.open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    sys.argv = ["s3lake", *words]
    from s3lake.cli import main as s3lake

    s3lake()


def _ended(process: BaseProcess) -> int:
    process.join(_LONGEST_S)
    if process.exitcode is None:
        process.kill()
        process.join()
        return -1
    return process.exitcode
