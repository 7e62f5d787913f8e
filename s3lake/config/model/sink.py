"""One sink: topics to bucket, prefix, layout and format, and what holds between its parts."""

from collections.abc import Iterable

from pydantic import PrivateAttr, model_validator

from s3lake.config.model import marker
from s3lake.config.model.base import RuleError
from s3lake.config.model.rules_within_sink import (
    check_columns,
    check_layout,
    check_schema_policy,
    check_sql,
    check_table,
)
from s3lake.config.model.sink_settings import SinkSettings
from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.records.encode.formats import FORMATS


class Sink(SinkSettings):
    """One configured route: topics to bucket, prefix, layout and format."""

    _other_indexes: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="after")
    def _check_together(self) -> "Sink":
        if self.topics and self.topics_regex is not None:
            raise RuleError("a sink reads either topics or topics_regex: take one of them out")
        if self.sql is not None and any(CONVERTERS[name].framed for name in (self.converter.key, self.converter.value)):
            raise RuleError("SQL of keys or values that are not text in Kafka is not supported yet: take it out", "sql")
        check_sql(self)
        form, envelope = self.format.type, self.envelope
        if self.format.one_record_an_object and self.flush.count != 1:
            raise RuleError(
                "format bytes writes one record an object: set flush.count to 1, or take it out", "flush", "count"
            )
        if envelope and envelope.style not in FORMATS[form].styles:
            formats = ", ".join(name for name, spec in FORMATS.items() if envelope.style in spec.styles)
            raise RuleError(
                f"envelope {envelope.style} is not supported for format {form}; use format {formats}, or take it out",
                "envelope",
            )
        landed = self.after_transforms
        check_columns(landed)
        check_schema_policy(landed)
        dead_letter_topic = self.errors.dead_letter_topic
        if dead_letter_topic is not None and self.reads(dead_letter_topic.name):
            raise RuleError(
                f"{dead_letter_topic.name!r} is a topic that this sink reads: it would land its own dead letters; name "
                "another topic",
                *("errors", "dead_letter_topic", "name"),
            )
        if self.layout.tombstones is not None and (self.nulls != "write" or self.sidecars.keys is None):
            raise RuleError(
                "records without a value keep only their key: set nulls: write and sidecars.keys",
                "layout",
                "tombstones",
            )
        try:
            check_layout(landed)
        except ValueError as error:
            setting = "partition_by" if self.layout.template is None else "template"
            raise RuleError(str(error), "layout", setting) from None
        check_table(self)
        if self.sealed.marker != "none":
            try:
                marker.pieces(self)
            except ValueError as error:
                raise RuleError(str(error), "sealed", "marker") from None
        return self

    @property
    def other_indexes(self) -> tuple[str, ...]:
        """The indexes of the configuration's other sinks in this bucket: no object key may be in one."""
        return self._other_indexes

    def with_other_indexes(self, sinks: Iterable["Sink"]) -> "Sink":
        """Return a copy whose `other_indexes` are the indexes of these sinks of the same configuration."""
        prefixes = {sink.index.prefix for sink in sinks if sink.bucket == self.bucket}
        copy = self.model_copy()
        copy._other_indexes = tuple(sorted(prefixes - {self.index.prefix}))  # not a field: no user sets it
        return copy
