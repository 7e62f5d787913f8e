"""Which of Kafka's records must be in a commit's data files, as its transforms left them; or why that is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s3lake.lake.objects.shape import ObjectShape
from s3lake.lake.verify.decoders import (
    IDENTIFIED,
    REGISTERED,
    build_null_check,
    find_unknown_schema,
    with_named_schemas,
)
from s3lake.lake.verify.differences import State
from s3lake.lake.verify.index_checks import CommitRange
from s3lake.lake.verify.log import UNREADABLE, Records

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.lake.verify.repeat_transforms import Transforms

_REPLACED = (
    "the sink keeps the last record of each key: its template contains no offset, so nothing shows which are left"
)
_SQL = "SQL is not run again"
_CHANGED = "the sink has other transforms or SQL now than it was landed with"
_REPLAYED = "dead letters were replayed into it, at another time than its transforms took"
_NO_REGISTRY = "its records need a Schema Registry, and the sink has no converter.registry any more"


class ExpectedRecords:
    """How the records of a commit's topic-partition come into its data files.

    Attributes:
        reason: why they are only counted; empty if they are compared. It may be found while records come.
        state: `incomparable` if the reason can be mended, else `counted`.
        registry: the sink's.
        needs: the parts of records that are needed, next to their values.
    """

    def __init__(
        self, sink: Sink, topic: str, shape: ObjectShape, commit_range: CommitRange, *, replaces: bool
    ) -> None:
        """Find out how; `replaces` is True if a later record replaces the file of an earlier one."""
        self.registry = sink.converter.registry.connection if sink.converter.registry else None
        self.reason = ""
        self.state: State = "counted"
        self._shape, self._nulls = shape, (commit_range.manifest.nulls if commit_range.manifest else "") or sink.nulls
        self._transforms: Transforms | None = None
        self._is_null = None
        if shape.format != "bytes":
            self._is_null = build_null_check(
                shape.value,
                self.registry,
                null_to_default="value" in shape.null_to_default,
                in_columns=shape.in_columns,
            )
        if self.registry is None and REGISTERED & {shape.key, shape.value}:
            self.only_count(_NO_REGISTRY, "incomparable")
        if replaces:
            self.only_count(_REPLACED)
        elif commit_range.manifest is not None and commit_range.manifest.form.transforms:
            self._prepare_transforms(sink, topic, commit_range)
        fields = shape.envelope.fields if shape.envelope else ()
        sidecars = {"key": shape.sidecars.keys, "headers": shape.sidecars.headers}
        in_files = frozenset(part for part, sidecar in sidecars.items() if part in fields or sidecar)
        self._read_parts = in_files | (self._transforms.needs if self._transforms else frozenset())
        converters = {"key": shape.key, "value": shape.value}
        if self._transforms is not None:
            converters = {"key": sink.converter.key, "value": sink.converter.value}
        self._identified = {part for part in self._read_parts & {"key"} | {"value"} if converters[part] in IDENTIFIED}
        if self.registry is not None and (self.registry.avro or self.registry.descriptors):
            self._identified = set()  # no record names its schema
        self.needs = self._read_parts | ({"headers"} if self._identified else set())
        if self.reason:
            self.needs = frozenset()

    def only_count(self, reason: str, state: State = "counted") -> None:
        """Note why records are only counted; the first reason counts."""
        if not self.reason:
            self.reason, self.state = reason, state

    def select(self, records: Records) -> tuple[Records, dict[int, str]]:
        """Return which of these records, none of them a dead letter, must be in data files.

        Also returns offset -> reason of the records that the transforms refuse.
        """
        refused: dict[int, str] = {}
        records = with_named_schemas(records, self._identified)
        self._require_readable(records)
        if not self.reason and self._transforms is not None and records.offsets:
            records, refused = self._transforms.apply(records)
        if not self.reason and self._nulls == "skip":
            records = self._exclude_nulls(records)
        return records, refused

    def _exclude_nulls(self, records: Records) -> Records:
        """Return the records with a value: Kafka's tombstones have none, and neither have nulls with a schema."""
        is_null = None if self._transforms is not None else self._is_null
        if is_null is not None:
            kept = [row for row, value in enumerate(records.values) if value is not None and not is_null(value)]
        elif None in records.values:
            kept = [row for row, value in enumerate(records.values) if value is not None]
        else:
            return records
        return records if len(kept) == len(records.values) else records.select(kept)

    def _prepare_transforms(self, sink: Sink, topic: str, commit_range: CommitRange) -> None:
        assert commit_range.manifest is not None
        landed, written = sink.after_transforms.converter, commit_range.manifest.form
        now = (sink.transforms_digest, landed.key, landed.value)
        if (written.transforms, self._shape.key, self._shape.value) != now:
            self.only_count(_CHANGED)
        elif sink.sql is not None:
            self.only_count(_SQL)
        elif not commit_range.manifest.clocks:
            self.only_count(_REPLAYED)
        else:
            from s3lake.lake.verify.repeat_transforms import Transforms  # the writer's code, only for those who use it

            clocks = sorted(
                (end, ms) for number, end, ms in commit_range.manifest.clocks if number == commit_range.partition
            )
            shape = self._shape
            as_bytes, tabular = shape.format == "bytes", shape.in_columns
            self._transforms = Transforms(sink, topic, clocks or [(0, 0)], as_bytes=as_bytes, tabular=tabular)

    def _require_readable(self, records: Records) -> None:
        """Only count the records from now on if one has unreadable headers, or a schema that the registry lacks."""
        for offset, headers in zip(records.offsets, records.headers, strict=False):
            if headers is UNREADABLE and "headers" in self._read_parts:
                self.only_count(f"the headers of offset {offset} cannot be read: a name is not UTF-8")
        as_bytes = {"value": self._shape.format == "bytes", "key": self._shape.sidecars.keys == "bytes"}
        for part, values in (("value", records.values), ("key", records.keys)):
            converter = self._shape.converter(part)
            is_decoded = converter in REGISTERED or (converter == "json_schema" and self.registry is not None)
            if is_decoded and not as_bytes[part] and (unknown := find_unknown_schema(self.registry, values)):
                self.only_count(f"converter.registry does not have a schema of its records: {unknown}", "incomparable")
