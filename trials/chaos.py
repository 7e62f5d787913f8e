"""What is done to production while it lands, in an order that a seed decides."""

import contextlib
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import psutil
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from s3lake import hours
from s3lake.demo import process
from trials.catalog import Catalog
from trials.checker import Bucket, committed
from trials.clock.shared_clock import SharedClock
from trials.commands import Commands
from trials.faults import FaultyS3
from trials.kafka_proxy import FaultyKafka
from trials.production import CODE, CONNECT, DAEMON, Production, kill
from trials.sender import FORGOTTEN
from trials.truth import Truth
from trials.upheavals import Rebirths, adopted

START = hours.key_of_ms(int(time.time() * 1000) - 2 * hours.HOUR_MS)
ERASES = "tables"
"""The sink whose rows are erased, and whose tables are in the catalog that goes away."""
COMMANDS = (
    ("rewrite", "--from", START, "--to", START, "--yes"),
    ("compact", "--yes"),
    ("clean", "--yes"),
    ("dead-letters", "replay", "--yes"),
    ("verify", "--allow-open"),
)
COMPACT = ("compact", "--sink", ERASES, "--yes")
ERASE = ("erase", "--sink", ERASES, "--where", f"id LIKE '{FORGOTTEN}%'", "--yes")
_MOST_PARTITIONS = 5
_CALM_S = 600.0
_HOUR_S = 75.0
"""Of the world, that an hour takes at least."""


class Chaos:
    """What is done to production, in an order that the seed decides.

    Args:
        made: all of it.
        clock: by which the services go.
        proxies: in front of S3 and of Kafka.
        truth: what stood in Kafka.
        routes: topics by sink.
        adopts: sink and topic of a connector that has stopped.
        rebirths: of the topic that is created again.
        commands: that are run beside.
        catalog: that goes away.
    """

    def __init__(
        self,
        made: Production,
        clock: SharedClock,
        proxies: tuple[FaultyS3, FaultyKafka],
        truth: Truth,
        bucket: Bucket,
        routes: Mapping[str, Sequence[str]],
        adopts: tuple[str, str],
        rebirths: Rebirths,
        commands: Commands,
        catalog: Catalog,
        seed: int,
    ) -> None:
        self.acts: Counter[str] = Counter()
        self._made, self._clock, self._proxies, self._truth, self._bucket = made, clock, proxies, truth, bucket
        self._adopts, self._rebirths, self._commands, self._catalog = adopts, rebirths, commands, catalog
        self._routes = [(sink, topic) for sink, topics in routes.items() for topic in topics]
        self._turned = self._away_until = 0.0
        self._spoilt = threading.Timer(0, self._spoil_no_more)
        # What is drawn while something is done depends on what was there: the order of all does not.
        self._order, self._rng = random.Random(seed), random.Random(f"{seed} in the midst")
        self._servers = {"broker": Revivable(made.kafka.pid, made.home), "s3": Revivable(made.s3.pid, made.home)}
        self._choices: list[tuple[str, int, Callable[[], object]]] = [
            *((f"kill {name}", 2, partial(self._kill, [name])) for name in (CODE, DAEMON, CONNECT)),
            ("kill run", 6, self._kill_run),
            ("kill worker", 3, self._kill_worker),
            ("kill all", 1, partial(self._kill, [CONNECT, CODE, DAEMON])),
            *((f"kill {name}", 1, partial(self._kill_server, name)) for name in self._servers),
            *((f"stop {name}", 1, partial(self._hold, name)) for name in (CODE, DAEMON, CONNECT, *self._servers)),
            ("spoil requests", 6, self._spoil),
            ("run a command", 6, self._command),
            ("turn the hour", 4, self._turn),
            ("add a partition", 1, self._add_partition),
            ("expire records", 2, self._expire),
            ("create a topic again", 3, self._create_again),
            ("take the catalog away", 4, self._take_catalog_away),
            ("compact and erase", 2, self._compact_and_erase),
        ]
        self._surely: list[tuple[str, Callable[[], object]]] = [
            ("take the catalog away", self._take_catalog_away),
            ("compact and erase", self._compact_and_erase),
            ("adopt a topic", self._adopt),
            ("create a topic again", self._create_again),
        ]
        self._until_sure = 0

    def act(self) -> None:
        """One of all that can be done, and a while of peace; what is to be done in any case comes soon."""
        if self._surely and self._until_sure == 0:
            name, act = self._surely[0]
            self._until_sure = self._rng.randint(1, 3)
        else:
            name, _, act = self._order.choices(self._choices, [weight for _, weight, _ in self._choices])[0]
            self._until_sure = max(0, self._until_sure - 1)
        print(f"{time.strftime('%X')} {name}", file=sys.stderr, flush=True)
        done = act() is not False
        self.acts[name if done else f"{name}, in vain"] += 1
        self._surely = [one for one in self._surely if not (done and one[0] == name)]
        if time.monotonic() > self._away_until:
            self._catalog.bring_back()
        self._commands.collect()
        time.sleep(self._rng.uniform(1, 12))

    @property
    def owes(self) -> bool:
        """Whether something that is to be done in any case was not yet."""
        return bool(self._surely)

    def calm(self) -> None:
        """All services are up, and nobody harms anything."""
        print(f"{time.strftime('%X')} peace", file=sys.stderr, flush=True)
        self._spoilt.cancel()
        self._spoil_no_more()
        self._catalog.bring_back()
        self._commands.collect(all_of_them=True)
        for service in self._made.services.values():
            if not service.running:
                service.start()
        for service in self._made.services.values():
            service.await_up()

    def end(self) -> None:
        """Servers that were started again write no more: those who began them know only the first ones."""
        for server in self._servers.values():
            server.kill()

    def await_landed(self) -> dict[str, int]:
        """Until every sink has what was read of every topic-partition; what is missing where that takes too long."""
        end = time.monotonic() + _CALM_S
        while True:
            behind = self._behind()
            if not behind or time.monotonic() > end:
                return behind
            time.sleep(2)

    def _behind(self) -> dict[str, int]:
        reached = committed(self._bucket, self._routes, START)
        lacks = {
            f"{sink} {topic} {partition}": end - reached.get((sink, topic, partition), 0)
            for (topic, partition), end in dict(self._truth.reached).items()
            for sink, of_sink in self._routes
            if of_sink == topic
        }
        return {place: lack for place, lack in lacks.items() if lack > 0}

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

    def _kill_worker(self) -> bool:
        """One of the processes in which Spark's tasks run, of the machine's own: there is no cluster with executors."""
        workers = [one for one in self._made.services[CONNECT].tree[1:] if _is_python(one)]
        kill(self._rng.sample(workers, 1) if workers else [])
        return bool(workers)

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
        """For a while, in which other harm is done as well; it ends while a command is repeated until it is done."""
        for proxy in self._proxies:
            proxy.share = self._rng.choice([0.0, 0.02, 0.1, 0.3])
        self._spoilt.cancel()
        self._spoilt = threading.Timer(self._rng.uniform(10, 60), self._spoil_no_more)
        self._spoilt.daemon = True
        self._spoilt.start()

    def _spoil_no_more(self) -> None:
        for proxy in self._proxies:
            proxy.share = 0.0

    def _take_catalog_away(self) -> bool:
        """For a while, in which hours end, merge and are changed. Return whether it was there."""
        if self._catalog.is_away or not self._catalog.take_away():
            return False
        self._away_until = time.monotonic() + self._rng.uniform(30, 120)
        return True

    def _command(self) -> None:
        self._commands.begin(self._rng.choice(COMMANDS))

    def _compact_and_erase(self) -> None:
        """What the tables of a sink follow, side by side."""
        self._commands.begin(COMPACT)
        self._commands.begin(ERASE)

    def _turn(self) -> bool:
        """Whether it is time: each hour is sealed and merged, which takes its while."""
        if time.monotonic() < self._turned + _HOUR_S:
            return False
        self.end_hour()
        return True

    def end_hour(self) -> None:
        """Within seconds the hour ends for all services, wherever they are."""
        self._turned = time.monotonic()
        end = hours.end_ms(hours.key_of_ms(int(self._clock.time() * 1000))) / 1000
        self._clock.set_forward(end - self._rng.uniform(0, 5))

    def _create_again(self) -> bool:
        return self._rebirths.again(self._rng.randint(2, 4))

    def _adopt(self) -> None:
        adopted(self._made, self._commands, *self._adopts)
        self._kill([CODE])  # it has the configuration of its start

    def _add_partition(self) -> None:
        topic, admin = self._rng.choice(self._truth.topics), self._admin()
        there = len(admin.list_topics(topic, timeout=30).topics[topic].partitions)
        if there < _MOST_PARTITIONS:
            admin.create_partitions([NewPartitions(topic, there + 1)])[topic].result()

    def _expire(self) -> None:
        """What all sinks have landed, and the checker has seen."""
        reached = committed(self._bucket, self._routes, START)
        gone = []
        for (topic, partition), seen in dict(self._truth.reached).items():
            landed = min(reached.get((sink, topic, partition), 0) for sink, of_sink in self._routes if of_sink == topic)
            if (low := min(seen, landed) // 2) > 0:
                gone.append(TopicPartition(topic, partition, low))
        admin = self._admin()  # which must not go before its answers
        for answer in admin.delete_records(gone).values() if gone else ():
            answer.result(60)

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._made.kafka.bootstrap_servers, "log_level": 0})


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


def _is_python(one: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return "python" in one.name()
    return False


def _signal(processes: Sequence[psutil.Process], number: int) -> None:
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.send_signal(number)
