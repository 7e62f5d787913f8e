"""Which of Kafka's records must be in a commit's data files, as its transforms left them; or why that is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from s3lake.commit.documents import Manifest
from s3lake.objects.shape import Shape
from s3lake.verify.decode import REGISTERED, find_unknown_schemas
from s3lake.verify.index_checks import CommitRange
from s3lake.verify.log import UNREADABLE, Records
from s3lake.verify.report import State

if TYPE_CHECKING:
    from s3lake.sink import Sink
    from s3lake.verify.transforms import Transforms

_SCHEMAS = 5
_REPLACED = "the sink keeps the last record of each key: its template says no offset, so nothing tells which are left"
_SQL = "SQL is not run again"
_CHANGED = "the sink has other transforms or SQL now than it was landed with"
_REPLAYED = "dead letters were replayed into it, at another time than its transforms took"
_NO_REGISTRY = "its records need a Schema Registry, and the sink has no converter.registry any more"


class Expected(NamedTuple):
    """Records that must be in data files.

    Attributes:
        refused: offsets that must be dead letters, and why.
        unknown: how many records have a schema that the registry does not have.
    """

    records: Records
    refused: dict[int, str]
    unknown: int


class ExpectedRecords:
    """How the records of a commit's topic-partition come into its data files.

    Attributes:
        counted: why they can only be counted; empty if they can be compared.
        incomparable: why they can only be counted although that can be mended; empty else.
        registry: the sink's.
        unknown: how many records so far have a schema that the registry does not have.
        needs: the parts of records that are needed, next to their values.
    """

    def __init__(self, sink: Sink, topic: str, shape: Shape, of: CommitRange, *, replaces: bool) -> None:
        """Find out how; `replaces` says that a later record replaces the file of an earlier one."""
        self.registry = sink.converter.registry.connection if sink.converter.registry else None
        self.unknown, self._schemas, self._shape = 0, set[str](), shape
        self._nulls = (of.manifest.nulls if of.manifest else "") or sink.nulls
        self._transforms: Transforms | None = None
        self.counted = _REPLACED if replaces else self._find_counted_reason(sink, topic, of.manifest, of.partition)
        self.incomparable = ""
        if self.registry is None and REGISTERED & {shape.key, shape.value}:
            self.incomparable = _NO_REGISTRY
        fields = shape.envelope.fields if shape.envelope else ()
        beside = {"key": shape.sidecars.keys, "headers": shape.sidecars.headers}
        self._in_files = frozenset(part for part, sidecar in beside.items() if part in fields or sidecar)

    @property
    def is_counted(self) -> bool:
        """True if records are only counted."""
        return bool(self.counted or self.incomparable)

    @property
    def needs(self) -> frozenset[str]:
        """The parts of records that are needed, next to their values."""
        if self.is_counted:
            return frozenset()
        return self._in_files | (self._transforms.needs if self._transforms else frozenset())

    def explain(self) -> tuple[str, State] | None:
        """Return why records are not compared, and if that can be mended; None if all of them are."""
        if self.counted and not self.incomparable:
            return self.counted, "counted"
        if self.unknown and not self.is_counted:
            schemas = "; ".join(sorted(self._schemas)[:_SCHEMAS])
            why = f"{self.unknown} of its records have a schema that converter.registry does not: {schemas}"
            return why, "incomparable"
        return (self.incomparable, "incomparable") if self.incomparable else None

    def select(self, records: Records) -> Expected:
        """Return what must be in data files of records that are not dead letters."""
        if self.is_counted:
            return Expected(records, {}, 0)
        count = len(records.offsets)
        records = self._without_unknown(records)
        unknown = count - len(records.offsets)
        refused: dict[int, str] = {}
        if self._transforms is not None and records.offsets:
            records, refused = self._transforms(records)
        for offset, headers in zip(records.offsets, records.headers, strict=False):
            if headers is UNREADABLE and "headers" in self._in_files:
                self.incomparable = f"the headers of offset {offset} cannot be read: a name is not UTF-8"
        if self._nulls == "skip" and None in records.values:
            records = records.only([row for row, value in enumerate(records.values) if value is not None])
        return Expected(records, refused, unknown)

    def _find_counted_reason(self, sink: Sink, topic: str, manifest: Manifest | None, partition: int) -> str:
        if manifest is None or not manifest.shape.transforms:
            return ""
        landed = sink.after_transforms.converter
        if (manifest.shape.transforms, self._shape.key, self._shape.value) != (
            sink.transforms_digest,
            landed.key,
            landed.value,
        ):
            return _CHANGED
        if sink.sql is not None:
            return _SQL
        if not manifest.clocks:
            return _REPLAYED
        from s3lake.verify.transforms import Transforms  # the writer's code, only for those who use it

        clocks = sorted((end, ms) for number, end, ms in manifest.clocks if number == partition)
        self._transforms = Transforms(sink, topic, clocks or [(0, 0)])
        return ""

    def _without_unknown(self, records: Records) -> Records:
        kept = {"value": self._shape.format == "bytes", "key": self._shape.sidecars.keys == "bytes"}
        unknown: set[int] = set()
        for part, values in (("value", records.values), ("key", records.keys)):
            converter = self._shape.converter(part)
            is_decoded = converter in REGISTERED or (converter == "json_schema" and self._shape.in_columns)
            if is_decoded and not kept[part] and (schemas := find_unknown_schemas(self.registry, values)):
                self._schemas.update(schemas.values())
                unknown |= {row for row, value in enumerate(values) if value is not None and value[:5] in schemas}
        if not unknown:
            return records
        return records.only([row for row in range(len(records.offsets)) if row not in unknown])
