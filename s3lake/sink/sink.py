"""One sink: topics to bucket, prefix, layout and format, and what holds between its parts."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, PrivateAttr, field_serializer, field_validator, model_validator

from s3lake import hours
from s3lake.convert import converters
from s3lake.convert.converters import CONVERTERS
from s3lake.encode.formats import FORMATS
from s3lake.schema import grammar
from s3lake.schema.avro_names import LEGAL_NAME
from s3lake.schema.types import Decimal, Primitive
from s3lake.sink.connections import S3
from s3lake.sink.contract import Contract
from s3lake.sink.errors import Errors
from s3lake.sink.flush import Flush
from s3lake.sink.format import Converter, Envelope, Format, Sidecars
from s3lake.sink.forwards import Forward
from s3lake.sink.layout import Layout
from s3lake.sink.part import Misfit, Part, at_least, matching, plain_path
from s3lake.sink.sealed import Sealed
from s3lake.sink.sql import Sql
from s3lake.sink.table import Table
from s3lake.sink.transforms import Transform
from s3lake.text import expressions
from s3lake.text.quantities import duration_text, seconds_of, size_of, size_text

if TYPE_CHECKING:
    from s3lake.transform.chain import Chain

_NAME_CHARACTERS = 100
_FLEET = 10  # topics, above which a sensor and a run for each cost more than they tell


class Index(Part):
    """Where the index lives: `<prefix>/<sink name>/` in the sink's bucket.

    Attributes:
        prefix: of its keys.
    """

    prefix: str = ".indexes"

    @field_validator("prefix")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not value.strip("/"):
            raise ValueError(f"{value!r}: the index needs a prefix of its own, for example .indexes")
        return plain_path(value.strip("/"))


def _shows_columns(converter: converters.Converter) -> bool:
    """Whether columns are found in the data, so that a user may say their types."""
    return converter.gives == "json" and converter.inferred


class Sink(Part):
    """One configured route: topics to bucket, prefix, layout and format.

    Attributes:
        name: of the sink; the index and the assets are called after it.
        topics: by name; either these or `topics_regex`.
        topics_regex: topics whose whole name matches, a regular expression of Python.
        missing_topic: what a run does about a topic that does not exist yet.
        bucket: where objects and index go.
        s3: how this bucket is reached and what is asked of it, all of it; None for the configuration's `s3`.
        prefix: what keys of objects begin with.
        start: the first hour of the partition grid, UTC.
        from_: `earliest`: the hour `start` begins at Kafka's log start.
        converter: what keys and values are.
        format: what files are.
        columns: of a table, those that the user gives beside what is found in the data: name -> type, for example
            `decimal(10,2)`, `timestamp`, `list<string>` or `struct<a: int64>`.
        envelope: which parts of a record its row holds; None for the value alone.
        sidecars: keys and headers as objects of their own.
        layout: the keys of objects.
        transforms: what is done to records before they are converted, in order.
        sql: projects and filters what transforms give.
        flush: when files are closed, and how long a record waits.
        nulls: what becomes of records without a value.
        contract: what values have to be, and what a commit has to be.
        errors: what becomes of records that are refused.
        exactly_once: false goes without conditional writes: at least once.
        close_grace: how long after its end an hour is left open, in seconds.
        batch_records: most records of one micro-batch.
        hours_per_run: hours that one run of a backfill lands; None: all.
        publish_offsets: tell the consumer group `s3lake-<sink>` how far the topic is landed.
        fleet: whether one sensor and one run are for all topics: `on`, `off`, above so many topics, or `auto`.
        max_columns: that files of parquet, avro and csv may have.
        memory_budget: of open files, per Python worker; beyond it they go to local disk.
        sealed: what is expected of an hour that is over.
        retention: how long after their end hours are kept, in seconds; None: for ever.
        table: that follows the commits by reference; None for none.
        forwards: other systems that get a copy of each sealed hour, exactly once.
        index: where the index lives.
        owners: who answers for its assets in Dagster: `team:data`, `ann@example.com`.
    """

    name: str = Field(examples=["events"])
    topics: tuple[str, ...] = ()
    topics_regex: str | None = None
    missing_topic: Literal["fail", "wait"] = "fail"
    bucket: str = Field(examples=["lake"])
    s3: S3 | None = None
    prefix: str = ""
    start: str = Field(examples=["2026-11-20T00"])
    from_: Literal["start", "earliest"] = Field(default="start", alias="from")
    converter: Converter = Field(default_factory=Converter)
    format: Format = Field(default_factory=Format)
    columns: dict[str, str] = Field(default_factory=dict)
    envelope: Envelope | None = None
    sidecars: Sidecars = Field(default_factory=Sidecars)
    layout: Layout = Field(default_factory=Layout)
    transforms: tuple[Transform, ...] = ()
    sql: Sql | None = None
    flush: Flush = Field(default_factory=Flush)
    nulls: Literal["skip", "fail", "write"] = "skip"
    contract: Contract = Field(default_factory=Contract, alias="schema")
    errors: Errors = Field(default_factory=Errors)
    exactly_once: bool = True
    close_grace: float = 300.0
    batch_records: int = 20_000_000
    hours_per_run: int | None = 24
    publish_offsets: bool = True
    fleet: Literal["auto", "on", "off"] | int = "auto"
    max_columns: int = 2000
    memory_budget: int = 512_000_000
    sealed: Sealed = Field(default_factory=Sealed)
    retention: float | None = None
    table: Table | None = None
    forwards: tuple[Forward, ...] = ()
    index: Index = Field(default_factory=Index)
    owners: tuple[str, ...] = ()

    _other_indexes: tuple[str, ...] = PrivateAttr(())

    _called = field_validator("name")(
        matching(rf"[A-Za-z0-9_-]{{1,{_NAME_CHARACTERS}}}", f"1 to {_NAME_CHARACTERS} of A-Z, a-z, 0-9, '_' and '-'")
    )
    _bucket_name = field_validator("bucket")(
        matching(r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "a bucket has 3 to 63 of a-z, 0-9, '-' and single '.'")
    )
    _prefix = field_validator("prefix")(plain_path)
    _bytes = field_validator("memory_budget", mode="before")(size_of)
    _seconds = field_validator("close_grace", "retention", mode="before")(seconds_of)
    _some = field_validator("batch_records", "hours_per_run", "max_columns")(at_least(1))
    _forward = field_validator("close_grace")(at_least(0))
    _an_hour = field_validator("retention")(at_least(3600))
    _budget_shown = field_serializer("memory_budget")(size_text)
    _durations_shown = field_serializer("close_grace", "retention", when_used="unless-none")(duration_text)

    @field_validator("fleet", mode="before")
    @classmethod
    def _switched(cls, value: Any) -> Any:
        """YAML reads `on` and `off` as true and false."""
        return {True: "on", False: "off"}[value] if isinstance(value, bool) else value

    @field_validator("fleet")
    @classmethod
    def _some_topics(cls, value: str | int) -> str | int:
        if isinstance(value, int) and value < 0:
            raise ValueError(f"{value} is out of range: a number of topics, 0 for any, or auto, on or off")
        return value

    @field_validator("start", mode="before")
    @classmethod
    def _hour(cls, value: Any) -> Any:
        hours.parse(value)
        return value

    @field_validator("topics")
    @classmethod
    def _topic_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for position, topic in enumerate(value):
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) or topic in (".", ".."):
                allowed = "letters, digits, '.', '_' and '-', at most 249; patterns belong into topics_regex"
                raise Misfit(f"{topic!r} is no Kafka topic name: {allowed}", position)
            if topic in value[:position]:
                raise Misfit(f"{topic!r} is named twice: take one out", position)
        return value

    @field_validator("owners")
    @classmethod
    def _owner_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for position, owner in enumerate(value):
            if not re.fullmatch(r"team:.+|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,7}", owner):
                allowed = "write team:NAME, for example team:data, or an e-mail address"
                raise Misfit(f"{owner!r} is no owner in Dagster: {allowed}", position)
        return value

    @field_validator("topics_regex")
    @classmethod
    def _regex(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                expressions.compile_pattern(value)
            except re.error as error:
                raise ValueError(f"{value[:100]!r} is no regular expression: {error}") from None
        return value

    @field_validator("memory_budget")
    @classmethod
    def _room_for_work(cls, value: int) -> int:
        if value < 64_000_000:
            raise ValueError(f"{size_text(value)} is out of range: a worker needs at least 64MB")
        return value

    @field_validator("columns")
    @classmethod
    def _types(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            try:
                grammar.parse(text)
            except ValueError as error:
                raise Misfit(str(error), name) from None
        return value

    def _columns_fit(self, after: Converter) -> None:
        kind = self.format.type
        if self.columns and not (FORMATS[kind].tabular and _shows_columns(CONVERTERS[after.value])):
            allowed = converters.in_words(_shows_columns)
            raise Misfit(f"columns need format avro, parquet or csv, and converter.value {allowed}", "columns")
        for name, text in self.columns.items():
            if kind == "csv" and not isinstance(grammar.parse(text), Primitive | Decimal):
                raise Misfit(f"{text!r} does not fit into a cell of CSV: take a plain type", "columns", name)
            if kind == "avro" and not LEGAL_NAME.fullmatch(name):
                raise Misfit(f"{name!r} is no name in Avro: letters, digits and '_', no digit first", "columns", name)

    @model_validator(mode="before")
    @classmethod
    def _one_record_an_object(cls, data: Any) -> Any:
        """`bytes` counts to one; whoever asks for another count has to know."""
        if not isinstance(data, dict):
            return data
        form, flush = data.get("format"), data.get("flush", {})
        kind, framing = (
            (form.get("type"), form.get("framing"))
            if isinstance(form, dict)
            else (getattr(form, "type", None), getattr(form, "framing", None))
        )
        if kind == "bytes" and framing is None and isinstance(flush, dict) and "count" not in flush:
            return {**data, "flush": {**flush, "count": 1}}
        return data

    @model_validator(mode="after")
    def _combinations(self) -> "Sink":
        if bool(self.topics) == (self.topics_regex is not None):
            raise Misfit("a sink reads either topics or topics_regex: give exactly one of them")
        if self.sql is not None and any(CONVERTERS[name].framed for name in (self.converter.key, self.converter.value)):
            raise Misfit("SQL of keys or values that are no texts in Kafka is not supported yet: take it out", "sql")
        self._sql_fits()
        landed = self.landed
        self._fields_exist(landed.converter)
        kind, envelope = self.format.type, self.envelope
        if self.format.one_record_an_object and self.flush.count != 1:
            raise Misfit(
                "format bytes writes one record an object: set flush.count to 1, or take it out", "flush", "count"
            )
        if envelope and envelope.style not in FORMATS[kind].styles:
            raise Misfit(f"envelope {envelope.style} is not supported for format {kind}", "envelope")
        self._columns_fit(landed.converter)
        self.contract.fits(self)
        letters = self.errors.dead_letter_topic
        if letters is not None and self.reads(letters.name):
            raise Misfit(
                f"{letters.name!r} is a topic that this sink reads: it would land its own dead letters",
                *("errors", "dead_letter_topic", "name"),
            )
        if self.layout.tombstones is not None and (self.nulls != "write" or self.sidecars.keys is None):
            raise Misfit(
                "records without a value keep only their key: set nulls: write and sidecars.keys",
                "layout",
                "tombstones",
            )
        if self.layout.template is not None:
            from s3lake.sink import templates

            try:
                templates.check(landed)
            except ValueError as error:
                raise Misfit(str(error), "layout", "template") from None
        if self.table is not None:
            self.table.fits(self)
        if self.sealed.marker != "none":
            from s3lake.sink import marker

            try:
                marker.pieces(self)
            except ValueError as error:
                raise Misfit(str(error), "sealed", "marker") from None
        return self

    def _sql_fits(self) -> None:
        """Spark takes `user` for its function where no field has that name, and a text has no fields."""
        if self.sql is None or CONVERTERS[self._chained.value].gives == "json":
            return
        named = sorted(self.sql.fields - {"value"})
        if named:
            raise Misfit(
                f"{named[0]!r} needs a field of the value, which converter.value {self._chained.value} does not give: "
                "set converter.value to json, or take the whole, `value`",
                "sql",
            )

    def _fields_exist(self, after: Converter) -> None:
        from s3lake.layout import partitioners

        for position, element in enumerate(map(partitioners.parse, self.layout.partition_by)):
            for source, converter in (("value", after.value), ("key", after.key)):
                if element.source == source and element.path and CONVERTERS[converter].gives != "json":
                    raise Misfit(
                        f"{element.text!r} needs a field of the {source}, which converter.{source} {converter} does "
                        f"not give: set converter.{source} to json or partition by something else",
                        *("layout", "partition_by", position),
                    )

    @property
    def extension(self) -> str:
        """What a data object's key ends with."""
        return self.format.extension if self.layout.extension is None else self.layout.extension

    @property
    def landed(self) -> "Sink":
        """The sink as conversion and files see it: after transforms and SQL, which may change what a value is."""
        if not self.transforms and self.sql is None:
            return self
        after = self._chained.model_copy(update={"value": "json"}) if self.sql else self._chained
        return self.model_copy(update={"converter": after})

    @property
    def _chained(self) -> Converter:
        """What keys and values are after transforms."""
        if not self.transforms:
            return self.converter
        chain = self._chain
        after = {"key": chain.key_converter, "value": chain.value_converter}
        return self.converter.model_copy(update=after)

    @property
    def _chain(self) -> "Chain":
        from s3lake.transform.chain import Chain

        return Chain.of(self.transforms, key=self.converter.key, value=self.converter.value)

    @property
    def routes(self) -> bool:
        """Whether transforms rename the topic, which changes keys and nothing else."""
        if not self.transforms:
            return False
        return self._chain.renames

    @property
    def other_indexes(self) -> tuple[str, ...]:
        """Where other sinks of the configuration have their index in this bucket: no record may lead a key there."""
        return self._other_indexes

    def beside(self, sinks: Iterable["Sink"]) -> None:
        """Know the sinks of the same configuration."""
        prefixes = {sink.index.prefix for sink in sinks if sink.bucket == self.bucket}
        self._other_indexes = tuple(sorted(prefixes - {self.index.prefix}))

    @property
    def root(self) -> str:
        """The prefix as keys begin with it: empty, or ending in one slash."""
        return self.prefix.rstrip("/") + "/" if self.prefix.strip("/") else ""

    def is_fleet(self, topics: int) -> bool:
        """Whether so many topics have one sensor and one run together; new ones are only found by such a sensor."""
        if self.fleet == "auto":
            return self.topics_regex is not None or topics > _FLEET
        return self.fleet == "on" if isinstance(self.fleet, str) else topics > self.fleet

    def reads(self, topic: str) -> bool:
        """Whether this sink lands `topic`."""
        return topic in self.topics or (
            self.topics_regex is not None and expressions.compile_pattern(self.topics_regex).matches(topic)
        )
