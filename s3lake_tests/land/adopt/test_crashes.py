"""A Lenses connector that crashes after any of its requests, and s3lake that continues: every record exactly once.

The connector is written down after its source: its commit of one file, and what it reports.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3lake import hours
from s3lake.config import draft
from s3lake.errors import ConfigurationError
from s3lake.index.commit.topic_index import TopicIndex
from s3lake.land.adopt import GroupOffsets, adopt_topic
from s3lake_tests.land.adopt.buckets import AdoptedTopic, Groups, bucket, copy, delete, lock, put, sink

NOW = hours.start_ms("2026-11-21T09")
END = 30
ROOT = ".indexes/lake/.locks/Topic(orders)/0"


class CrashedError(Exception):
    pass


class Connector:
    """One topic-partition; `life` is the number of requests until it crashes."""

    def __init__(self, layout, life):
        self.store, self.layout, self.life = bucket(), layout, life
        own = f"{ROOT}/partition=0_topic=orders.lock"
        self.lock = own if layout == "default" else f"{ROOT}.lock"
        self.done = -1
        self.group = None

    def request(self, call, *arguments):
        if self.life == 0:
            raise CrashedError
        self.life -= 1
        call(*arguments)

    def write_lock(self, key, document):
        self.request(put, self.store, key, document)

    def move(self, source, destination):
        self.store.put(destination, self.store.get(source).body)

    def commit_file(self, number, last):
        records = range(self.done + 1, last + 1)
        name = f"orders/0/{last:012d}_1_2" if self.layout == "default" else f"orders(0_{last:012d})"
        final = f"p/{name}.json"
        temporary = f".temp-upload/Topic(orders)/0/u{number}{final}"
        self.request(put, self.store, temporary, b"".join(b"%d\n" % one for one in records))
        operations = [copy(self.store, temporary, final), delete(temporary)]
        before = None if self.done < 0 else self.done
        self.write_lock(self.lock, lock(before, last, operations))
        self.request(self.move, temporary, final)
        self.request(self.store.delete, temporary)
        self.write_lock(self.lock, lock(before, last, operations[1:]))
        self.request(self.store.delete, temporary)
        self.write_lock(self.lock, lock(last))
        self.done = last

    def report(self, to_kafka):
        if self.layout == "default":
            self.write_lock(f"{ROOT}.lock", lock(self.done if self.done >= 0 else None))
        if to_kafka and self.done >= 0:
            self.request(setattr, self, "group", self.done + 1)

    def landed(self):
        return [json.loads(line) for key in self.store.list("p/") for line in self.store.get(key).body.splitlines()]


@pytest.mark.parametrize("layout", ["default", "no_partition"])
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    reports=st.lists(st.sampled_from([None, "lock", "kafka"]), min_size=4, max_size=4),
    life=st.integers(1, 40),
)
def test_every_record_is_landed_exactly_once_or_the_adoption_is_refused(layout, sizes, reports, life):
    connector = Connector(layout, life)
    stopped = False
    try:
        for number, size in enumerate(sizes):
            connector.commit_file(number, connector.done + size)
            if reports[number]:
                connector.report(reports[number] == "kafka")
        stopped = True
    except CrashedError:
        pass
    groups = Groups({"connect-lake": GroupOffsets({0: connector.group} if connector.group else {})})
    index = TopicIndex(connector.store, ".indexes/sink", "orders")
    template = None if layout == "default" else "{topic}({partition}_{offset:012})"
    adopted = draft.Connector("lake", lenses=True, indexes=".indexes")
    settings = sink("p/", {"template": template})
    try:
        found = adopt_topic(adopted, settings, index, AdoptedTopic({0: (0, END)}), groups, now_ms=NOW)
    except ConfigurationError:
        assert not stopped
        return
    start = found.starts[0].offset
    assert sorted([*connector.landed(), *range(start, END)]) == list(range(END))
