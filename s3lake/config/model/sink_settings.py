"""The settings of a sink, their defaults, and what follows from them."""

import hashlib
import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from s3lake import hours
from s3lake.config.model.base import (
    ConfigModel,
    Duration,
    Name,
    Prefix,
    RuleError,
    Size,
    Topic,
    accepted_by,
    at_least,
    lasts_at_least,
    matches,
)
from s3lake.config.model.converter import Converter
from s3lake.config.model.error_handling import Errors
from s3lake.config.model.format import Envelope, Flush, Format, Sidecars
from s3lake.config.model.forwards import Forward
from s3lake.config.model.layout import Layout
from s3lake.config.model.s3 import S3
from s3lake.config.model.schema_policy import SchemaPolicy
from s3lake.config.model.table import Table
from s3lake.config.model.transforms import Sql, Transform
from s3lake.records.schema.columns import grammar
from s3lake.text import expressions
from s3lake.text.quantities import format_size

if TYPE_CHECKING:
    from typing_extensions import Self

    from s3lake.records.transform.chain.chain import Chain

SHORTEST_RETENTION_S = 3600
"""An hour: what is landed is at least kept so long."""
_TOGETHER = 10  # topics, above which a sensor and a run for each are too many
_BUCKET = matches(r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "a bucket has 3 to 63 of a-z, 0-9, '-' and single '.'")
_OWNER = matches(
    r"team:.+|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}",
    "an owner in Dagster is team:NAME, for example team:data, or an e-mail address",
)
Count = Annotated[int, at_least(1)]


class Index(ConfigModel):
    """The place of the index: `<prefix>/<name>/` in the sink's bucket.

    Attributes:
        prefix: the prefix of its keys.
        name: the name of the index; None for the sink's name. A sink that was renamed keeps its index by its former
            name.
    """

    prefix: Prefix = ".indexes"
    name: Name | None = None

    @field_validator("prefix", mode="before")
    @classmethod
    def _check_prefix(cls, value: Any) -> Any:
        if isinstance(value, str) and not value.strip("/"):
            raise ValueError(f"{value!r}: the index needs a prefix of its own, for example .indexes")
        return value.strip("/") if isinstance(value, str) else value


class Sealed(ConfigModel):
    """The expectations of an hour that is over.

    Attributes:
        within: how long after its end an hour should be sealed, in seconds; the check `sealed_in_time` reports it.
        marker: an object in the hour's directory once it is sealed: an empty `_SUCCESS`, or `_objects.json`, the list
            of the hour's objects.
    """

    within: Annotated[Duration, lasts_at_least(1)] = 900.0
    marker: Literal["none", "success", "objects"] = "none"


class SinkSettings(ConfigModel):
    """The settings of a sink, and what follows from them. `Sink` checks that they fit together.

    Attributes:
        name: the name of the sink; the index and the assets are called after it.
        topics: the topics by name; either these or `topics_regex`. A sink without either lands only tables of assets.
        topics_regex: topics whose whole name matches this regular expression of Python.
        missing_topic: how a run handles a topic that does not exist yet.
        bucket: where objects and index go.
        s3: all settings of S3 for this bucket; None for the configuration's `s3`.
        prefix: the beginning of keys of objects.
        start: the first hour of the partition grid, UTC.
        from_: `earliest`: the hour `start` begins at Kafka's log start.
        converter: the encoding of keys and values.
        format: the format of the files.
        columns: types of columns that cannot be found in the data: name -> type, for example `decimal(10,2)`,
            `timestamp`, `list<string>` or `struct<a: int64>`.
        envelope: the parts of a record in its row; None for the value alone.
        sidecars: keys and headers as objects of their own.
        layout: the keys of objects.
        transforms: changes of records before they are converted, in order.
        sql: projects and filters the results of transforms.
        flush: when files are closed, and how long a record waits.
        nulls: how records without a value are handled.
        schema_policy: rules for values, and conditions of a commit.
        errors: how refused records are handled.
        exactly_once: false for a store without conditional writes: at least once.
        close_grace: how long after its end an hour is left open, in seconds.
        batch_records: the most records of one micro-batch.
        hours_per_run: hours that one run of a backfill lands; None for all.
        publish_offsets: commit the landed offsets to the consumer group `s3lake-<sink>`.
        together: whether one sensor and one run land all topics; None: with `topics_regex`, or more than 10 topics.
        max_columns: the most columns of files of parquet, avro and csv.
        memory_budget: the memory of open files in each Python worker, in bytes; beyond it they are written to local
            disk.
        sealed: expectations of an hour that is over.
        retention: how long after their end hours are kept, in seconds; None for ever.
        table: an Iceberg table that follows the commits by reference; None for no table.
        forwards: other systems that get a copy of each sealed hour, exactly once.
        index: where the index is.
        owners: the owners of its assets in Dagster: `team:data`, `ann@example.com`.
    """

    name: Name = Field(examples=["events"])
    topics: tuple[Topic, ...] = ()
    topics_regex: str | None = None
    missing_topic: Literal["fail", "wait"] = "fail"
    bucket: Annotated[str, _BUCKET] = Field(examples=["lake"])
    s3: S3 | None = None
    prefix: Prefix = ""
    start: Annotated[str, accepted_by(hours.parse_hour)] = Field(examples=["2026-11-20T00"])
    from_: Literal["start", "earliest"] = Field(default="start", alias="from")
    converter: Converter = Field(default_factory=Converter)
    format: Format = Field(default_factory=Format)
    columns: dict[str, Annotated[str, accepted_by(grammar.parse_type)]] = Field(default_factory=dict)
    envelope: Envelope | None = None
    sidecars: Sidecars = Field(default_factory=Sidecars)
    layout: Layout = Field(default_factory=Layout)
    transforms: tuple[Transform, ...] = ()
    sql: Sql | None = None
    flush: Flush = Field(default_factory=Flush)
    nulls: Literal["skip", "fail", "write"] = "skip"
    schema_policy: SchemaPolicy = Field(default_factory=SchemaPolicy, alias="schema")
    errors: Errors = Field(default_factory=Errors)
    exactly_once: bool = True
    close_grace: Annotated[Duration, lasts_at_least(0)] = 300.0
    batch_records: Count = 20_000_000
    hours_per_run: Count | None = 24
    publish_offsets: bool = True
    together: bool | None = None
    max_columns: Count = 2000
    memory_budget: Annotated[Size, at_least(64_000_000, form=format_size)] = 512_000_000
    sealed: Sealed = Field(default_factory=Sealed)
    retention: Annotated[Duration, lasts_at_least(SHORTEST_RETENTION_S)] | None = None
    table: Table | None = None
    forwards: tuple[Forward, ...] = ()
    index: Index = Field(default_factory=Index)
    owners: tuple[Annotated[str, _OWNER], ...] = ()

    @field_validator("topics")
    @classmethod
    def _check_topics(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for position, topic in enumerate(value):
            if topic in value[:position]:
                raise RuleError(f"{topic!r} is named twice: take one out", position)
        return value

    @field_validator("topics_regex")
    @classmethod
    def _check_topics_regex(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                expressions.compile_pattern(value)
            except re.error as error:
                raise ValueError(f"{value[:100]!r} is not a regular expression: {error}") from None
        return value

    @model_validator(mode="before")
    @classmethod
    def _default_count(cls, data: Any) -> Any:
        """Set flush.count to 1 for `bytes`; another count has to be written."""
        if not isinstance(data, dict):
            return data
        form, flush = data.get("format"), data.get("flush", {})
        form_type, framing = (
            (form.get("type"), form.get("framing"))
            if isinstance(form, dict)
            else (getattr(form, "type", None), getattr(form, "framing", None))
        )
        if form_type == "bytes" and framing is None and isinstance(flush, dict) and "count" not in flush:
            return {**data, "flush": {**flush, "count": 1}}
        return data

    @property
    def has_several_topics(self) -> bool:
        """True if objects of several topics, or tables of several assets, can be landed."""
        return len(self.topics) != 1

    @property
    def extension(self) -> str:
        """The ending of a data object's key."""
        return self.format.extension if self.layout.extension is None else self.layout.extension

    @property
    def after_transforms(self) -> "Self":
        """The settings after transforms and SQL, which may change the encoding of values: for conversion and files."""
        if not self.transforms and self.sql is None:
            return self
        after = (
            self.transformed_converter.model_copy(update={"value": "json"})
            if self.sql and not self.sql.keeps_values
            else self.transformed_converter
        )
        return self.model_copy(update={"converter": after})

    @property
    def transformed_converter(self) -> Converter:
        """The encoding of keys and values after transforms."""
        if not self.transforms:
            return self.converter
        chain = self._chain
        after = {"key": chain.key_converter, "value": chain.value_converter}
        return self.converter.model_copy(update=after)

    @property
    def _chain(self) -> "Chain":
        from s3lake.records.transform.chain.chain import Chain

        converter, keeps_schemas = self.converter, self.sql is None  # SQL takes JSON
        exact = converter.times == "exact"
        return Chain(self.transforms_as_data, converter.key, converter.value, keeps_schemas=keeps_schemas, exact=exact)

    @property
    def transforms_as_data(self) -> tuple[dict[str, Any], ...]:
        """The transforms as plain values, for `transform.chain.Chain`."""
        return tuple(transform.model_dump() for transform in self.transforms)

    @property
    def transformed(self) -> tuple[str, ...]:
        """The parts of a record, of key, value and headers, that transforms or SQL may change."""
        changed = {"value"} if self.sql is not None else set()
        if self.transforms:
            changed |= self._chain.writes - {"topic"}
        return tuple(sorted(changed))

    @property
    def transforms_digest(self) -> str:
        """A digest of transforms and SQL as they are configured; empty if there are none."""
        if not self.transforms and self.sql is None:
            return ""
        configured = self.model_dump(mode="json", include={"transforms", "sql"})
        return hashlib.sha256(json.dumps(configured, sort_keys=True).encode()).hexdigest()

    @property
    def renames_topics(self) -> bool:
        """True if transforms rename the topic, which changes keys only."""
        if not self.transforms:
            return False
        return self._chain.renames

    @property
    def index_root(self) -> str:
        """The beginning of the index's keys, without a slash at its end."""
        return f"{self.index.prefix}/{self.index.name or self.name}"

    @property
    def root(self) -> str:
        """The beginning of keys: empty, or the prefix with one slash at its end."""
        return self.prefix.rstrip("/") + "/" if self.prefix.strip("/") else ""

    def lands_together(self, topics: int) -> bool:
        """Return whether one sensor and one run land that many topics; only such a sensor finds new topics."""
        if self.together is None:
            return self.topics_regex is not None or topics > _TOGETHER
        return self.together

    def reads(self, topic: str) -> bool:
        """Return whether this sink lands `topic`."""
        return topic in self.topics or (
            self.topics_regex is not None and expressions.compile_pattern(self.topics_regex).matches(topic)
        )
