"""Production for as long as you like, under somebody who means it harm: `benchmarks/soak.py --minutes 10 --seed 1`.

Three sinks land three topics while records arrive in transactions and without, late, skewed, poisoned, with tombstones
and with fields that come later. Processes are killed and stopped, the broker and the S3 server as well, requests to S3
are delayed, lost, repeated and refused, logs expire, topic-partitions are added, and the commands that change what has
landed run beside. Then all is left in peace, `clean` runs as it would two days later, and `checker.py` compares.

The seed decides what is done and in which order; when exactly, the machine does.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psutil
import yaml
from checker import Bucket, Truth, check, committed
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from faults import FaultyS3
from production import BUCKET, CODE, CONNECT, DAEMON, S3LAKE, Production, kill, production

from s3lake import hours
from s3lake.commit import clean
from s3lake.config import native
from s3lake.demo import process
from s3lake.demo.s3 import versitygw_binary
from s3lake.objects.readback.committed import index_of
from s3lake.orchestration.resources import S3Resource, stores
from s3lake.sink.collisions import Keys

TOPICS = ("orders", "clicks", "stock")
COLUMNS = {"id": "string", "amount": "int64", "note": "string", "later": "string"}
FORMATS: dict[str, dict[str, Any]] = {
    "lines": {"format": {"type": "json", "codec": "gzip"}},
    "tables": {"format": {"type": "parquet", "codec": "snappy"}, "columns": COLUMNS},
    "blocks": {"format": {"type": "avro", "codec": "deflate"}, "columns": COLUMNS},
}
START = hours.key_of_ms(int(time.time() * 1000) - 2 * hours.HOUR_MS)
COMMANDS = (
    ("rewrite", "--from", START, "--to", START),
    ("compact", "--yes"),
    ("clean",),
    ("dead-letters", "replay", "--yes"),
    ("verify", "--allow-open"),
)
_MOST_PARTITIONS = 5
_CALM_S = 600.0
_TWO_DAYS_MS = 2 * 24 * hours.HOUR_MS


def main() -> None:
    """Exit code 1 where anything is wrong with what has landed."""
    options = _parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
    if versitygw_binary() is None:
        raise SystemExit("versitygw is missing: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    with tempfile.TemporaryDirectory(prefix="s3lake-soak-") as scratch, _temporary_files(scratch):
        home = Path(scratch) / "home"
        home.mkdir()
        with (
            production(home, TOPICS, 3, {"start": START}, connect=True, clock=None) as made,
            FaultyS3(made.s3.endpoint_url, options.seed) as proxy,
        ):
            _configure(made, proxy.url)
            told = _soaked(made, proxy, options)
    print(_in_words(told))
    print(json.dumps({**vars(options), **told}))
    sys.exit(0 if told["clean"] else 1)


def _soaked(made: Production, proxy: FaultyS3, options: argparse.Namespace) -> dict[str, Any]:
    truth = Truth(made.kafka.bootstrap_servers, TOPICS)
    truth.start()
    senders = [Sender(made.kafka.bootstrap_servers, topic, options.seed, options.records) for topic in TOPICS]
    for sender in senders:
        sender.start()
    made.start()
    chaos = Chaos(made, proxy, truth, options.seed)
    with Memory(made) as memory:
        end = time.monotonic() + options.minutes * 60
        while time.monotonic() < end:
            chaos.act()
        chaos.calm()
        for sender in senders:
            sender.stop()
        behind = chaos.await_landed()
    swept = _cleaned(made)
    truth.stop()
    made.stop()
    found = {sink: check(chaos.bucket, sink, TOPICS, truth) for sink in FORMATS}
    uploads = chaos.bucket.uploads()
    return {
        "clean": not (behind or uploads) and all(one.clean for one in found.values()),
        "acts": dict(chaos.acts),
        "faults": dict(proxy.spoilt),
        "commands": {name: dict(codes) for name, codes in chaos.codes.items()},
        "records": len(truth.seen_at),
        "poison": len(truth.poison),
        "tombstones": truth.tombstones,
        "rolled_back_transactions": sum(sender.rolled_back for sender in senders),
        "behind": behind,
        "swept": swept,
        "uploads_left": len(uploads),
        "rss_mb": memory.told,
        "sinks": {sink: asdict(one) for sink, one in found.items()},
    }


class Sender:
    """Records of one topic, about so many a second, until told to end: what becomes of each, only Kafka knows."""

    def __init__(self, servers: str, topic: str, seed: int, a_second: int) -> None:
        self.rolled_back = 0
        self._servers, self._topic, self._a_second = servers, topic, a_second
        self._rng = random.Random(f"{seed} {topic}")
        self._numbers = count()
        self._begun = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(120)

    def _run(self) -> None:
        base = {"bootstrap.servers": self._servers, "linger.ms": 20, "log_level": 0, "delivery.timeout.ms": 60_000}
        plain = Producer({**base, "enable.idempotence": True})
        held: Producer | None = None
        while not self._over.is_set():
            if self._rng.random() < 0.3:
                held = self._transaction(held, base)
            else:
                self._send(plain)
                plain.poll(0)
        plain.flush(60)

    def _transaction(self, held: Producer | None, base: dict[str, Any]) -> Producer | None:
        keep = self._rng.random() < 0.7
        timeouts = {"transaction.timeout.ms": 20_000, "delivery.timeout.ms": 20_000}
        fresh = held is None
        held = held or Producer({**base, "transactional.id": f"soak-{self._topic}", **timeouts})
        try:
            if fresh:
                held.init_transactions(30)
            held.begin_transaction()
            self._send(held)
            held.commit_transaction(30) if keep else held.abort_transaction(30)
            self.rolled_back += not keep
        except KafkaException:  # the broker was away: whether it was committed is asked of Kafka, by whoever reads
            return None
        return held

    def _send(self, producer: Producer) -> None:
        for _ in range(max(1, self._a_second // 4)):
            key, value, stamp = self._record()
            # Without a partition the key decides, and most keys are one: a topic-partition has most of the records.
            with contextlib.suppress(BufferError):
                producer.produce(self._topic, value, key, timestamp=stamp)
        self._over.wait(0.25)

    def _record(self) -> tuple[bytes, bytes | None, int]:
        number, now = next(self._numbers), int(time.time() * 1000)
        key = b"most" if self._rng.random() < 0.6 else b"%d" % (number % 50)
        drawn = self._rng.random()
        stamp = now - self._rng.randrange(2 * hours.HOUR_MS) if drawn > 0.95 else now
        if drawn < 0.02:
            return key, None, stamp
        if drawn < 0.04:
            return key, b"no json: %d" % number, stamp
        value = {"id": f"{self._topic}-{number}", "amount": number, "note": "x" * self._rng.randrange(200)}
        if time.monotonic() - self._begun > 60:
            value["later"] = "a field that came later"
        return key, json.dumps(value).encode(), stamp


class Chaos:
    """What is done to production, in an order that the seed decides."""

    def __init__(self, made: Production, proxy: FaultyS3, truth: Truth, seed: int) -> None:
        self.acts: Counter[str] = Counter()
        self.codes: dict[str, Counter[int]] = {}
        self.bucket = Bucket(made.s3.endpoint_url, made.s3.access_key_id, made.s3.secret_access_key, BUCKET)
        self._made, self._proxy, self._truth = made, proxy, truth
        self._spoilt_until = 0.0
        self._rng = random.Random(seed)
        self._servers = {"broker": Revivable(made.kafka.pid, made.home), "s3": Revivable(made.s3.pid, made.home)}
        self._commands: list[Command] = []
        self._choices: list[tuple[str, int, Callable[[], object]]] = [
            *((f"kill {name}", 2, partial(self._kill, [name])) for name in (CODE, DAEMON, CONNECT)),
            ("kill run", 6, self._kill_run),
            ("kill all", 1, partial(self._kill, [CONNECT, CODE, DAEMON])),
            *((f"kill {name}", 1, partial(self._kill_server, name)) for name in self._servers),
            *((f"stop {name}", 1, partial(self._hold, name)) for name in (CODE, DAEMON, CONNECT, *self._servers)),
            ("spoil requests", 6, self._spoil),
            ("run a command", 6, self._command),
            ("add a partition", 1, self._add_partition),
            ("expire records", 2, self._expire),
        ]

    def act(self) -> None:
        """One of all that can be done, and a while of peace."""
        name, _, act = self._rng.choices(self._choices, [weight for _, weight, _ in self._choices])[0]
        print(f"{time.strftime('%X')} {name}", file=sys.stderr, flush=True)
        self.acts[name if act() is not False else f"{name}, and there was none"] += 1
        if time.monotonic() > self._spoilt_until:
            self._proxy.share = 0.0
        self._collect()
        time.sleep(self._rng.uniform(1, 12))

    def calm(self) -> None:
        """All services are up, and nobody harms anything any more."""
        self._proxy.share = 0.0
        for command in self._commands:
            self._note(command)
        for service in self._made.services.values():
            if not service.running:
                service.start()
        for service in self._made.services.values():
            service.await_up()

    def await_landed(self) -> dict[str, int]:
        """Until every sink has what was read of every topic-partition; what is missing where that takes too long."""
        end = time.monotonic() + _CALM_S
        while True:
            behind = self._behind()
            if not behind or time.monotonic() > end:
                return behind
            time.sleep(2)

    def _behind(self) -> dict[str, int]:
        reached = committed(self.bucket, FORMATS, TOPICS)
        pairs = [(sink, *place) for sink in FORMATS for place in self._truth.reached]
        lacks = {pair: self._truth.reached[pair[1:]] - reached.get(pair, 0) for pair in pairs}
        return {" ".join(map(str, pair)): lack for pair, lack in lacks.items() if lack > 0}

    def _kill(self, names: Sequence[str]) -> None:
        services = [self._made.services[name] for name in names]
        kill([one for service in services for one in service.tree])
        time.sleep(self._rng.uniform(0, 4))
        for service in services:
            service.start()
        for service in services:
            service.await_up()

    def _kill_run(self) -> bool:
        """Whether there was one."""
        runs = self._made.runs
        kill(runs)
        return bool(runs)

    def _kill_server(self, name: str) -> None:
        self._servers[name].kill()
        time.sleep(self._rng.uniform(0.5, 5))
        self._servers[name].revive()

    def _hold(self, name: str) -> None:
        """As a machine that is out of breath: processes that stand still, and go on where they were."""
        tree = self._servers[name].tree if name in self._servers else self._made.services[name].tree
        _signal(tree, signal.SIGSTOP)
        time.sleep(self._rng.uniform(2, 20))
        _signal(tree, signal.SIGCONT)

    def _spoil(self) -> None:
        """For a while, in which other harm is done as well."""
        self._proxy.share = self._rng.choice([0.02, 0.1, 0.3])
        self._spoilt_until = time.monotonic() + self._rng.uniform(10, 60)

    def _command(self) -> None:
        words = self._rng.choice(COMMANDS)
        environment = self._made.services[CODE].environment
        command = [sys.executable, "-W", "ignore", *S3LAKE, *words]
        log = self._made.home / f"command-{self.acts['run a command']}.log"
        with log.open("wb") as output:
            run = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        self._commands.append(Command(" ".join(words), run, log))

    def _collect(self) -> None:
        for command in [*self._commands]:
            if command.process.poll() is not None:
                self._note(command)
                self._commands.remove(command)

    def _note(self, command: "Command") -> None:
        code = command.process.wait(600)
        self.codes.setdefault(command.name, Counter())[code] += 1
        if code:
            print(f"{command.name}: exit code {code}\n{command.log.read_text()[-1500:]}", file=sys.stderr, flush=True)

    def _add_partition(self) -> None:
        topic, admin = self._rng.choice(TOPICS), self._admin()
        there = len(admin.list_topics(topic, timeout=30).topics[topic].partitions)
        if there < _MOST_PARTITIONS:
            admin.create_partitions([NewPartitions(topic, there + 1)])[topic].result()

    def _expire(self) -> None:
        """What all sinks have landed, and the checker has seen."""
        reached = committed(self.bucket, FORMATS, TOPICS)
        gone = []
        for (topic, partition), seen in self._truth.reached.items():
            landed = min(reached.get((sink, topic, partition), 0) for sink in FORMATS)
            if (low := min(seen, landed) // 2) > 0:
                gone.append(TopicPartition(topic, partition, low))
        admin = self._admin()  # which must not go before its answers
        for answer in admin.delete_records(gone).values() if gone else ():
            answer.result(60)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._made.kafka.bootstrap_servers, "log_level": 0})


class Command(NamedTuple):
    """One of ours under way, beside the landings."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path


class Revivable:
    """A server of the demo's that can be killed, and started again as it was: same port, same directory."""

    def __init__(self, guard: int, home: Path) -> None:
        self._guard = psutil.Process(guard)
        (self._server,) = self._guard.children()
        self._command, self._environment = self._server.cmdline(), self._server.environ()
        self._log = home / f"{Path(self._command[0]).name}-again.log"

    @property
    def tree(self) -> list[psutil.Process]:
        return [self._server, *self._server.children(recursive=True)]

    def kill(self) -> None:
        kill([self._guard, *self.tree])  # the guard first: it would take the directory away

    def revive(self) -> None:
        self._guard = psutil.Process(process.spawn(self._command, self._log, self._environment).pid)
        for _ in range(200):
            if children := self._guard.children():
                (self._server,) = children
                return
            time.sleep(0.05)
        raise SystemExit(f"{self._command[0]} did not start again:\n{self._log.read_text()[-4000:]}")


class Memory:
    """Resident memory of the services, every few seconds: whether it grows."""

    def __init__(self, made: Production) -> None:
        self._made, self._over = made, threading.Event()
        self._samples: list[float] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def told(self) -> dict[str, int]:
        """Medians of the first and the last third, in MiB."""
        third = max(1, len(self._samples) // 3)
        return {
            name: round(median(part)) if part else 0
            for name, part in (("first_third", self._samples[:third]), ("last_third", self._samples[-third:]))
        }

    def _watch(self) -> None:
        while not self._over.wait(2):
            total = 0
            for service in self._made.services.values():
                for one in service.tree:
                    with contextlib.suppress(psutil.Error):
                        total += one.memory_info().rss
            self._samples.append(total / 2**20)


def _configure(made: Production, endpoint: str) -> None:
    """Three sinks in place of one, and S3 behind the proxy."""
    path = made.home / "s3lake.yaml"
    written = yaml.safe_load(path.read_text())
    written["s3"]["endpoint_url"] = endpoint
    alike = {
        "topics": list(TOPICS),
        "bucket": BUCKET,
        "start": START,
        "errors": {"tolerance": "all"},
        "flush": {"interval": "10s"},
        "close_grace": "10s",
        "fleet": "on",
    }
    written["sinks"] = [{"name": name, "prefix": name, **alike, **more} for name, more in FORMATS.items()]
    path.write_text(yaml.safe_dump(written))
    made.config = native.loads(path.read_text(), str(path))


def _cleaned(made: Production) -> int:
    """What `clean` finds to do two days from now, when no writer of today can be alive."""
    done = 0
    for sink in made.config.sinks:
        for topic in TOPICS:
            index = index_of(sink, topic, stores(sink, S3Resource(made.config.s3))(BUCKET))
            later = int(time.time() * 1000) + _TWO_DAYS_MS
            done += len(clean.clean(index, now_ms=later, keys=Keys.of(sink, topic)))
    return done


def _in_words(told: dict[str, Any]) -> str:
    sinks: list[dict[str, Any]] = list(told["sinks"].values())
    total = {name: sum(one[name] for one in sinks) for name in ("lost", "duplicated", "made_up", "sealed", "rows")}
    unlisted = sum(len(one["unlisted"]) + len(one["absent"]) for one in sinks)
    harm = sum(told["acts"].values())
    return (
        f"acts {harm}, faults {sum(told['faults'].values())}, records {told['records']:,} in {len(sinks)} sinks: "
        f"rows {total['rows']:,}, hours sealed {total['sealed']}, "
        f"lost {total['lost']}, duplicated {total['duplicated']}, made up {total['made_up']}, "
        f"unlisted {unlisted}, uploads left {told['uploads_left']}, "
        f"freshness p95 {max(one['freshness_p95_s'] for one in sinks)} s, "
        f"RSS {told['rss_mb']['first_third']} to {told['rss_mb']['last_third']} MiB"
    )


def _signal(processes: Sequence[psutil.Process], number: int) -> None:
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.send_signal(number)


@contextlib.contextmanager
def _temporary_files(directory: str) -> Iterator[None]:
    """All that servers keep is below one directory, which goes when all is over, whoever was killed."""
    before, tempfile.tempdir = tempfile.tempdir, directory
    os.environ["TMPDIR"] = directory
    try:
        yield
    finally:
        tempfile.tempdir = before


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="of harm (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is drawn (default: %(default)s)")
    parser.add_argument("--records", type=int, default=100, help="a second in each topic (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
