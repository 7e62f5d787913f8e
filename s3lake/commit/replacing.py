"""Replacing: whether a commit holds all that it takes the place of."""

from collections import Counter
from collections.abc import Mapping

from s3lake.commit.index import Read
from s3lake.commit.sums import Commits
from s3lake.errors import DataLossError, MissingDocumentError


def must_hold_as_much(topic: str, hour: str, replaced: Commits, reads: Mapping[int, Read]) -> None:
    """Refuse a rewrite that read fewer records than the commits that it is to replace.

    Kafka's log start says nothing of this: compaction takes records out of the middle of a log.

    Raises:
        DataLossError: with the counts of every topic-partition that would lose records.
    """
    before: Counter[int] = Counter()
    for at in range(len(replaced)):
        try:
            manifest = replaced[at]
        except MissingDocumentError:
            continue  # nobody can sweep its files either: the rewrite is what mends such an hour
        before.update({partition: read.read for partition, read in manifest.partitions.items()})
    now = {partition: reads[partition].read if partition in reads else 0 for partition in before}
    fewer = [
        f"topic-partition {partition}: {now[partition]} of {count}"
        for partition, count in sorted(before.items())
        if now[partition] < count
    ]
    if fewer:
        raise DataLossError(
            f"{topic} {hour}: Kafka has fewer records now than were landed ({', '.join(fewer)}), as after "
            "compaction. A rewrite would delete the last copy of the others, so the landed files stay. To have them in "
            "another form, read them (`load_input`, `s3lake.load`) and write the result elsewhere"
        )
