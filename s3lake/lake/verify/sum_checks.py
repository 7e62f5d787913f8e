"""The sums of a tile against the manifests of its commits: other processes read the sums, and not the manifests."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from s3lake.index.commit.documents import DEAD_LETTERS, Manifest
from s3lake.index.plan.counts import Counts
from s3lake.index.plan.tile import Sums
from s3lake.lake.verify.index_checks import ReportDifference


def check_sums(sums: Sums, manifests: Sequence[Manifest], report: ReportDifference) -> None:
    """Report each sum of a tile that is not the sum of its commits; `manifests` are all of them, in order."""
    expected = _sum_manifests(manifests)
    for name in Sums.__struct_fields__:
        by_tile, by_commits = getattr(sums, name), getattr(expected, name)
        if by_tile != by_commits:
            report("count", f"the tile states {name} {_to_text(by_tile)}, its commits {_to_text(by_commits)}")


def _sum_manifests(manifests: Sequence[Manifest]) -> Sums:
    reads = [read for manifest in manifests for read in manifest.partitions.values()]
    files = [file for manifest in manifests for file in manifest.files]
    dead_files = sum(file.stream == DEAD_LETTERS for file in files)
    expired = [end - first for manifest in manifests for _, first, end in manifest.expired]
    taken = [end - first for manifest in manifests for replayed in manifest.taken for _, first, end in replayed.offsets]
    return Sums(
        **{name: _add_up([getattr(read, name) for read in reads], none) for name, none in _NO_COUNTS.items()},
        offsets=sum(read.end - read.start for read in reads),
        expired=sum(expired),
        files=len(files) - dead_files,
        dead_files=dead_files,
        records=sum(file.records for file in files if file.stream in ("data", DEAD_LETTERS)),
        bytes=sum(file.bytes for file in files),
        landed_ms=max((manifest.created_ms for manifest in manifests), default=0),
        waits=tuple(wait for manifest in manifests for wait in manifest.waits),
        taken=sum(taken),
    )


_NO_COUNTS: dict[str, Any] = msgspec.structs.asdict(Counts())
"""Each count of no records: 0, or an empty dict if it is counted by field."""


def _add_up(counts: Sequence[Any], none: Any) -> Any:
    """Return the sum of one count of several topic-partitions; `none` is the count of no records."""
    return sum(counts) if isinstance(none, int) else dict(sum(map(Counter, counts), Counter()))


def _to_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
