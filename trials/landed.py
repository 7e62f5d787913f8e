"""What came of a day, by Dagster and the index: when hours were sealed and records committed, and what files hold."""

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg
import numpy as np

from s3lake.config.model import Sink
from s3lake.index.commit.documents import Manifest
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.land.topic.open_topic_sink import open_topic_sink
from s3lake.orchestration.translator import sealed_key
from trials.production import SINK, Production
from trials.requests_log import Request
from trials.traffic import Traffic

_MOST_SAMPLES = 2_000_000
_MOST_EVENTS = 1_000  # of a topic


def sealed(instance: dg.DagsterInstance, sink: Sink, wanted: Sequence[str]) -> dict[tuple[str, str], float]:
    """When each topic's hours of `wanted` were announced as sealed, as far as they were."""
    found: dict[tuple[str, str], float] = {}
    for topic in sink.topics:
        events = instance.fetch_materializations(sealed_key(sink, topic), limit=_MOST_EVENTS)
        for record in events.records:  # the newest first: what stays is the first time
            if record.partition_key in wanted:
                found[topic, str(record.partition_key)] = record.timestamp
    return found


def indexes(production: Production) -> dict[str, TopicIndex]:
    """Of each topic."""
    config = production.config
    return {topic: open_topic_sink(config, config.sink(SINK), topic).index for topic in production.topics}


def freshness(
    indexes: Mapping[str, TopicIndex], wanted: Sequence[str], traffic: Traffic, visible: Mapping[str, float]
) -> "np.ndarray":
    """Seconds from record to commit, of every record or of some in even steps.

    Args:
        indexes: of each topic.
        wanted: hours.
        traffic: knows when which offset was written.
        visible: by key of the manifest, when its commit was.
    """
    step = max(1, traffic.records * len(indexes) // _MOST_SAMPLES)
    ages = []
    for index in indexes.values():
        reached: dict[int, int] = {}
        for manifest in _commits(index, wanted):
            moment = visible.get(index.manifest_key(manifest.hour, manifest.id), manifest.created_ms / 1000)
            for partition, read in manifest.partitions.items():
                first = max(read.start, reached.get(partition, 0))
                if first < read.end:  # else it holds anew what earlier commits held
                    ages.append(moment - traffic.stamps(partition, first, read.end, step) / 1000)
                    reached[partition] = read.end
    return np.concatenate(ages)


def file_sizes(indexes: Mapping[str, TopicIndex], wanted: Sequence[str]) -> list[int]:
    """Of the data files that the tiles list, in bytes."""
    found = []
    for index in indexes.values():
        for hour in wanted:
            tile, _ = index.existing_tile(hour)
            manifests = [index.read_listed(hour, commit) for commit in tile.commits]
            found += [file.bytes for one in manifests for file in one.files if file.stream == "data"]
    return found


def visible(asked: Sequence[Request]) -> dict[str, float]:
    """By key of the manifest, when its commit was: when its tile was written for the second time after it.

    The first time says that the commit is pending. The log has whole seconds, so a second more is the latest.
    """
    found: dict[str, float] = {}
    pending: dict[str, tuple[str, int]] = {}
    for request in asked:
        if request.operation != "PutObject" or not request.key.endswith(".json"):
            continue
        directory = request.key.rpartition("/")[0]
        tile = f"{directory}.json"
        if request.key in pending:
            manifest, times = pending.pop(request.key)
            if times:
                found[manifest] = request.at + 1
            else:
                pending[request.key] = (manifest, 1)
        elif directory.rpartition("/")[2][:2] == "20":  # below a directory of an hour
            pending[tile] = (request.key, 0)
    return found


def _commits(index: TopicIndex, wanted: Sequence[str]) -> Iterator[Manifest]:
    """In the order of their making, those that others have replaced included."""
    for hour in wanted:
        manifests = (index.manifest(hour, commit) for commit in index.manifest_ids(hour))
        yield from sorted(filter(None, manifests), key=lambda one: one.created_ms)
