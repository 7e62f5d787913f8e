"""Production for as long as you like, under somebody who means it harm: `python -m trials soak --minutes 10 --seed 1`.

Three sinks land four topics while records arrive in transactions and without, late, skewed, poisoned, with tombstones
and with fields that come later. Processes are killed and stopped, Spark's workers, the broker and the S3 server as
well; requests to S3 and Kafka are delayed, lost, repeated and refused; logs expire and are compacted, topic-partitions
are added, a topic is deleted and created again, and one that a connector has begun is adopted; the catalog of one
sink's Iceberg tables is unavailable for minutes; hours end every few minutes; and the commands that change what has
landed run beside, while whole tables are scanned again and again. Then all is left in peace, `clean` runs as it would
two days later, and `checker.py` compares.

The seed decides what is done and in which order; when exactly, the machine does.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
import yaml
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from benchmarks.process_tree import Watch
from s3lake import hours
from s3lake.config import native
from s3lake_tests.kit.s3 import find_program
from trials import connector
from trials.catalog import Catalog, Scans, Tables
from trials.chaos import ERASE, ERASES, START, Chaos
from trials.checker import INDEX, Bucket, check, freshness
from trials.clock.shared_clock import SharedClock
from trials.commands import Commands
from trials.faults import FaultyS3
from trials.kafka_proxy import FaultyKafka
from trials.production import BUCKET, Production, cleaned, production
from trials.sender import FORGOTTEN, Sender
from trials.truth import Truth
from trials.upheavals import Rebirths, connected

COMPACTED, AGAIN, ADOPTED = "prices", "stock", "carts"
TOPICS = ("orders", "clicks", AGAIN, COMPACTED)
"""Of every sink."""
ADOPTS = "lines"
PARTITIONS = 3
COLUMNS = {"id": "string", "amount": "int64", "note": "string", "later": "string"}
FORMATS: dict[str, dict[str, Any]] = {
    ADOPTS: {"format": {"type": "json", "codec": "gzip"}, "layout": connector.LAYOUT},
    ERASES: {"format": {"type": "parquet", "codec": "snappy"}, "columns": COLUMNS},
    "blocks": {"format": {"type": "avro", "codec": "deflate"}, "columns": COLUMNS},
}
TABLE = "lake.{topic}"
STORES = ("versitygw", "minio")
_COMPACTION = {
    "cleanup.policy": "compact,delete",  # the latter for what expires
    "segment.ms": "10000",
    "max.compaction.lag.ms": "10000",
    "min.cleanable.dirty.ratio": "0.01",
}
_FLAT = 1.25
"""Times the most that it was in the first two thirds may be in the last one."""
_MINUTES_TO_BE_WARM = 8.0
_SEEN_S = 120.0
_LONGER_S = 300.0
"""Where nothing has landed yet when the time is over."""


def main() -> None:
    """Exit code 1 where anything is wrong with what has landed, or memory grows."""
    options = _parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
    if find_program(options.store) is None:
        raise SystemExit(f"{options.store} is missing: CONTRIBUTING.md says how it is built")
    with tempfile.TemporaryDirectory(prefix="s3lake-soak-") as scratch, _temporary_files(scratch):
        home = Path(scratch) / "home"
        home.mkdir()
        clock = SharedClock.create(home / "clock", time.time())
        topics = (*TOPICS, ADOPTED)
        with (
            production(
                home, topics, PARTITIONS, {"start": START}, connect=True, clock=home / "clock", store=options.store
            ) as made,
            FaultyS3(made.s3.endpoint_url, options.seed) as s3,
            FaultyKafka(made.kafka.bootstrap_servers, options.seed) as kafka,
        ):
            catalog = Catalog(home / "catalog.db")
            _configure(made, s3.url, kafka.bootstrap_servers, catalog)
            told = _soaked(made, clock, (s3, kafka), catalog, options)
            print(_in_words(told))
            print(json.dumps({**vars(options), **told}, default=str), flush=True)
            if options.keep is not None and not told["clean"]:
                shutil.copytree(scratch, options.keep, symlinks=True, ignore=_list_sockets)
    sys.exit(0 if told["clean"] else 1)


def _soaked(
    made: Production,
    clock: SharedClock,
    proxies: tuple[FaultyS3, FaultyKafka],
    catalog: Catalog,
    options: argparse.Namespace,
) -> dict[str, Any]:
    servers = made.kafka.bootstrap_servers
    routes = {sink: (*TOPICS, ADOPTED) if sink == ADOPTS else TOPICS for sink in FORMATS}
    left = connected(made, ADOPTS, ADOPTED, PARTITIONS, hours.start_ms(START))
    truth = Truth(servers, (*TOPICS, ADOPTED), frozenset({AGAIN}))
    truth.start()
    senders = {topic: Sender(servers, topic, options.seed, options.records, clock.time) for topic in truth.topics}
    for sender in senders.values():
        sender.start()
    made.start()
    until = time.monotonic() + options.minutes * 60
    bucket = Bucket(made.s3.endpoint_url, made.s3.access_key_id, made.s3.secret_access_key, BUCKET)
    commands = Commands(made)
    rebirths = Rebirths(made, truth, senders[AGAIN], bucket, tuple(FORMATS), commands)
    chaos = Chaos(
        made, clock, proxies, truth, bucket, routes, (ADOPTS, ADOPTED), rebirths, commands, catalog, options.seed
    )
    tables = Tables.of(catalog, bucket, made.s3)
    with Memory(made) as memory, Scans(tables) as scans:
        while time.monotonic() < until or (chaos.owes and time.monotonic() < until + _LONGER_S):
            chaos.act()
        chaos.calm()
        steady = [topic for topic in TOPICS if topic != AGAIN]
        fresh = {sink: freshness(bucket, sink, steady, truth) for sink in FORMATS}
        chaos.end_hour()
        for sender in senders.values():
            sender.stop()
        seen = all(truth.is_whole(topic, _SEEN_S) for topic in truth.topics)
        behind = chaos.await_landed() if seen else {"the checker": 1}
        verified = _verified(commands)
    made.stop()
    swept = sum(cleaned(sink, topic, made.config, clock.time) for sink in made.config.sinks for topic in sink.topics)
    truth.stop()
    truth.compacted(COMPACTED)
    found = {
        sink: check(bucket, sink, topics, _erased(truth, sink), left if sink == ADOPTS else None, rebirths.formers)
        for sink, topics in routes.items()
    }
    broken = [*scans.broken, *tables.broken()]
    of_tables = [*tables.differences(ERASES, TOPICS, TABLE)]
    # MinIO lists the uploads of one key only, and ends them itself.
    uploads = _uploads_left(bucket) if options.store != "minio" else None
    chaos.end()
    flat = memory.flat or options.minutes < _MINUTES_TO_BE_WARM
    return {
        "clean": not (behind or uploads or verified or broken or of_tables)
        and flat
        and all(one.clean for one in found.values()),
        "kills": sum(count for act, count in chaos.acts.items() if act.startswith("kill") and "in vain" not in act),
        "acts": dict(chaos.acts),
        "faults": {name: count for proxy in proxies for name, count in proxy.spoilt.items()},
        "commands": {name: dict(codes) for name, codes in commands.codes.items()},
        "records": len(truth.seen),
        "poison": len(truth.poison),
        "tombstones": truth.tombstones,
        "compacted_away": len(truth.gone),
        "rolled_back_transactions": sum(sender.rolled_back for sender in senders.values()),
        "created_again": [dict(former.since) for former in rebirths.formers],
        "adopted_objects": len(left.objects),
        "behind": behind,
        "verified": verified,
        "swept": swept,
        "uploads_left": uploads,
        "scans": scans.done,
        "scans_broken": broken[:20],
        "tables_differ": of_tables[:20],
        "rss_mb": memory.thirds,
        "rss_flat": memory.flat,
        "freshness_p95_s": fresh,
        "load": os.getloadavg()[2],
        "sinks": {sink: asdict(one) for sink, one in found.items()},
    }


def _uploads_left(bucket: Bucket) -> dict[str, list[str]]:
    """Each upload that `clean` left, as its key and id, and the documents of the index that name it."""
    uploads = {upload: key for upload, key in bucket.uploads().items() if not key.startswith(".tables/")}
    documents = {key: bucket.body(key) for key in bucket.objects() if key.startswith(INDEX)} if uploads else {}
    return {
        f"{key} {upload}": [name for name, body in documents.items() if upload.encode() in body]
        for upload, key in uploads.items()
    }


def _erased(truth: Truth, sink: str) -> Truth:
    """What may have been erased of a sink: such a record is there once or not at all."""
    forgotten = {one for one in truth.seen if one.startswith(FORGOTTEN)} if sink == ERASES else set()
    return replace(truth, gone=truth.gone | forgotten)


def _verified(commands: Commands) -> int:
    """The exit code of `verify`, once an hour that has just ended is closed and merged.

    An erasure whose table could not follow left what it replaced, and asked to be repeated.
    """
    for _ in range(6):
        commands.ended(ERASE)
        if (code := commands.ended(("verify", "--allow-open"))) == 0:
            break
        time.sleep(10)
    return code


class Memory(Watch):
    """Resident memory of each service, every few seconds: whether one grows. Runs come and go, and are left out."""

    def __init__(self, made: Production) -> None:
        super().__init__(2)
        self._made = made
        self._samples: dict[str, list[float]] = defaultdict(list)

    @property
    def thirds(self) -> dict[str, tuple[int, ...]]:
        """Per service what it had at most in nine tenths of what was seen first, then and last, in MiB.

        A median says how long ago the service was killed, and the most of all whether a child was just being forked.
        """
        return {
            name: tuple(round(_ninth_decile(part)) for part in _thirds(seen)) for name, seen in self._samples.items()
        }

    @property
    def flat(self) -> bool:
        """Whether none grew any more once all were warm."""
        return all(last <= max(before) * _FLAT for *before, last in self.thirds.values())

    def look(self) -> None:
        runs = {one.pid for one in self._made.runs}
        for name, service in self._made.services.items():
            used = 0
            for one in service.tree:
                if one.pid not in runs:
                    with contextlib.suppress(psutil.Error):
                        used += one.memory_info().rss
            self._samples[name].append(used / 2**20)


def _ninth_decile(seen: Sequence[float]) -> float:
    return sorted(seen)[len(seen) * 9 // 10]


def _thirds(seen: Sequence[float]) -> tuple[Sequence[float], ...]:
    third = max(1, len(seen) // 3)
    return seen[:third], seen[third:-third] or seen, seen[-third:]


def _configure(made: Production, s3: str, kafka: str, catalog: Catalog) -> None:
    """Three sinks in place of one, S3 and Kafka behind the proxies, a topic that is compacted."""
    admin = AdminClient({"bootstrap.servers": made.kafka.bootstrap_servers, "log_level": 0})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in _COMPACTION.items()
    ]
    wanted = ConfigResource(ResourceType.TOPIC, COMPACTED, incremental_configs=entries)
    admin.incremental_alter_configs([wanted])[wanted].result(60)
    path = made.home / "s3lake.yaml"
    written = yaml.safe_load(path.read_text())
    written["s3"]["endpoint_url"] = s3
    written["kafka"]["bootstrap_servers"] = kafka
    alike = {
        "bucket": BUCKET,
        "start": START,
        "errors": {"tolerance": "all"},
        "flush": {"interval": "10s"},
        "close_grace": "10s",
        "together": True,
    }
    written["sinks"] = [
        {"name": name, "prefix": name, "topics": [*TOPICS], **alike, **more} for name, more in FORMATS.items()
    ]
    (erases,) = [sink for sink in written["sinks"] if sink["name"] == ERASES]
    erases["table"] = {"name": TABLE, "catalog": {"type": "sql", "uri": catalog.uri}}
    path.write_text(yaml.safe_dump(written))
    # Otherwise than in a benchmark without kills runs die before they have begun; those that are asked for just now
    # seem old by this clock, and are asked for again.
    instance = yaml.safe_load((made.home / "dagster.yaml").read_text())
    instance["run_monitoring"]["start_timeout_seconds"] = 60
    (made.home / "dagster.yaml").write_text(yaml.safe_dump(instance))
    made.config = native.load_text(path.read_text(), str(path))


def _in_words(told: dict[str, Any]) -> str:
    sinks: list[dict[str, Any]] = list(told["sinks"].values())
    counts = ("lost", "given_up", "duplicated", "made_up", "misplaced", "sealed", "rows")
    total = {name: sum(one[name] for one in sinks) for name in counts}
    unlisted = sum(len(one["unlisted"]) + len(one["absent"]) for one in sinks)
    uploads = "not told by this store" if told["uploads_left"] is None else len(told["uploads_left"])
    return (
        f"kills {told['kills']}, acts {sum(told['acts'].values())}, faults {sum(told['faults'].values())}, "
        f"records {told['records']:,} in {len(sinks)} sinks: "
        f"rows {total['rows']:,}, hours sealed {total['sealed']}, "
        f"lost {total['lost']}, given up with {len(told['created_again'])} deleted topics {total['given_up']}, "
        f"duplicated {total['duplicated']}, made up {total['made_up']}, of another topic {total['misplaced']}, "
        f"unlisted {unlisted}, uploads left {uploads}, "
        f"tables: scans {told['scans']:,}, broken {len(told['scans_broken'])}, "
        f"files otherwise than the index {len(told['tables_differ'])}, "
        f"verify {'agrees' if not told['verified'] else 'DIFFERS'}, "
        f"freshness p95 {max(told['freshness_p95_s'].values())} s, "
        f"RSS {'flat' if told['rss_flat'] else 'GROWS'} ({told['rss_mb']} MiB), "
        f"load {told['load']:.0f}"
    )


@contextlib.contextmanager
def _temporary_files(directory: str) -> Iterator[None]:
    """All that servers keep is below one directory, which goes when all is over, whoever was killed."""
    before, tempfile.tempdir = tempfile.tempdir, directory
    os.environ["TMPDIR"] = directory
    try:
        yield
    finally:
        tempfile.tempdir = before


def _list_sockets(directory: str, names: list[str]) -> list[str]:
    """The names that cannot be copied."""
    return [name for name in names if Path(directory, name).is_socket() or Path(directory, name).is_fifo()]


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="of harm (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all that is drawn (default: %(default)s)")
    parser.add_argument("--store", choices=STORES, default="versitygw", help="(default: %(default)s)")
    parser.add_argument("--records", type=int, default=100, help="a second in each topic (default: %(default)s)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="copy what the servers keep there if it is not clean")
    return parser.parse_args()
