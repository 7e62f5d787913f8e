"""The layout: the rule that gives an object its key."""

from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from s3lake.config.model.base import ConfigModel, Duration, RuleError, accepted_by, at_least, lasts_at_least, matches
from s3lake.records.layout import partition_elements, template
from s3lake.records.layout import pieces as key_pieces
from s3lake.records.layout.pieces import Number, Piece, TimeUnit
from s3lake.text.dates import zones

BY_HOUR = "{topic}/date={hour:yyyy-MM-dd}/hour={hour:HH}/{partition}-{offset:012}"
"""The default of a native sink: a directory is a partition of Dagster's, and complete when the partition is."""
_LENSES = ("partition_by", "include_keys", "padding", "suffix", "connector_names")
_SUFFIX_BYTES, _PADDED = 64, 64
_CHARACTER = matches(r"(?![/\\~])[ -~]", r"one printable ASCII character, neither '/', '\' nor '~'")


class Padding(ConfigModel):
    """Padding of the topic-partition and of the offset in keys; it never cuts a number.

    Attributes:
        type: the side on which numbers are padded, or none.
        char: the character that fills up.
        partition: digits of topic-partitions.
        offset: digits of offsets.
    """

    type: Literal["left", "right", "none"] = "left"
    char: Annotated[str, _CHARACTER] = "0"
    partition: Annotated[int, at_least(0, _PADDED)] = 0
    offset: Annotated[int, at_least(0, _PADDED)] = 12

    @model_validator(mode="after")
    def _check_offsets(self) -> "Padding":
        harmless = "0" if self.type == "left" else ""
        if (
            self.type != "none"
            and max(self.partition, self.offset) > 1
            and self.char.isdigit()
            and self.char != harmless
        ):
            example = "1 and 10" if self.char == "0" else f"1 and {self.char}1"
            raise RuleError(
                f"{self.char!r} with padding.type {self.type} can make one key of two offsets ({example}): use another "
                "character, or type left with '0'",
                "char",
            )
        return self

    @property
    def numbers(self) -> tuple[Number, Number]:
        """The topic-partition and the offset as they are padded in names."""
        return (
            Number("partition", self.partition, self.type, self.char),
            Number("offset", self.offset, self.type, self.char),
        )


class Time(ConfigModel):
    """The time that `{time:…}` of a template prints (Confluent's and Aiven's choices).

    Attributes:
        source: `record` is the Kafka record's timestamp, `wallclock` the micro-batch's (frozen, so that a retry gives
            the same keys), `field` a field of the value.
        field: dotted path of that field: a number, digits, or ISO 8601 text.
        unit: the unit of numbers and digits, if the value's schema has no unit for the field. Without it they are
            milliseconds, and one that would be in 1970 is refused, because it is probably seconds.
        timezone: IANA name or offset; ISO text without an offset is read in it too.
        locale: names of months and days are English: short ones for anything but `en` (`en-US`), as Java's are;
            another bare language is an error if a name is printed.
        duration: seconds that a bucket lasts, counted from local 1970-01-01T00:00; None for no buckets.
        before_1970: the bucket of an earlier time: `begin` for the one that it is in, `toward_zero` for the next one,
            as Confluent's partitioners have it.
    """

    source: Literal["record", "wallclock", "field"] = "record"
    field: str = "timestamp"
    unit: TimeUnit | None = None
    timezone: Annotated[str, accepted_by(zones.parse_zone)] = "UTC"
    locale: Annotated[str, matches(r".*\S.*", "write a language, for example en")] = "en"
    duration: Annotated[Duration, lasts_at_least(0.001)] | None = None
    before_1970: Literal["begin", "toward_zero"] = "begin"

    @field_validator("field")
    @classmethod
    def _check_field(cls, value: str) -> str:
        try:
            partition_elements.parse_field_path(value)
        except ValueError as error:
            raise ValueError(f"{value!r} is not a field: {error}") from None
        return value

    @property
    def piece(self) -> key_pieces.TimeElement:
        """The piece of a key, without its pattern."""
        path = partition_elements.parse_field_path(self.field) if self.source == "field" else ()
        bucket_ms = round(self.duration * 1000) if self.duration is not None else None
        toward_zero = self.before_1970 == "toward_zero"
        return key_pieces.TimeElement(
            "", self.source, path, self.timezone, self.locale, bucket_ms, toward_zero, self.unit
        )


class Layout(ConfigModel):
    """The rule that gives an object its key: a template, or the elements of Lenses' documentation.

    Attributes:
        partition_by: elements after which directories are named, for example `type` or `_date.yyyy-MM-dd`.
        include_keys: directories are `name=value`; the default is true with a partition_by.
        padding: the padding of the numbers in names; a template may pad on its own, `{offset:020}`.
        suffix: text before the extension.
        connector_names: names as the Lenses connector really gives them: `LASTOFFSET_minTs_maxTs`, no topic directory
            under partition_by. A file is uploaded when it is closed, because its name is not known before.
        template: the whole key below the prefix, instead of all of the above (docs/layouts.md); the extension is
            appended unless it contains {extension}. None for the elements, also if one of them is given.
        tombstones: template of records without a value, of which only sidecars are written.
        missing: the text for a field that is null or missing, and in a template for a key that is null.
        time: the time of a template's `{time:…}`.
        extension: the ending of names, if it is not the format's own, for example `.snappy.parquet`; may be empty.
    """

    partition_by: tuple[Annotated[str, accepted_by(partition_elements.parse_element)], ...] = ()
    include_keys: bool | None = None
    padding: Padding = Field(default_factory=Padding)
    suffix: str = ""
    connector_names: bool = False
    template: str | None = BY_HOUR
    tombstones: str | None = None
    missing: str = "[missing]"
    time: Time = Field(default_factory=Time)
    extension: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _choose_elements_or_template(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if "template" not in data and any(data.get(name) not in (None, (), [], "", False) for name in _LENSES):
            data = {**data, "template": None}
        if data.get("include_keys") is None:
            data = {**data, "include_keys": bool(data.get("partition_by"))}
        return data

    @field_validator("suffix", "missing", "extension")
    @classmethod
    def _check_name(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if "/" in value or "~" in value or not value.isprintable() or len(value.encode()) > _SUFFIX_BYTES:
            raise ValueError(
                f"{value[:80]!r} is not allowed: at most {_SUFFIX_BYTES} bytes, neither '/' nor '~' (the mark of a "
                "replacing commit), no control characters"
            )
        return value

    @model_validator(mode="after")
    def _check_together(self) -> "Layout":
        for name, text in (("template", self.template), ("tombstones", self.tombstones)):
            if text is not None:
                try:
                    self._parse(text)
                except ValueError as error:
                    raise RuleError(str(error), name) from None
        if self.template is None and self.tombstones is not None:
            raise RuleError("tombstones needs a template: give layout.template too", "tombstones")
        if self.template in (None, BY_HOUR) and self.time != Time():
            raise RuleError("time is for {time:…} of a template: give layout.template too", "time")
        if self.template is None:
            return self
        for name in ("partition_by", "include_keys", "suffix", "connector_names"):
            if getattr(self, name):
                raise RuleError(f"{name} has no meaning with a template: write it into the template", name)
        return self

    def _parse(self, text: str) -> tuple[Piece, ...]:
        return template.parse_template(text, self.time.piece, self.padding.numbers[0])

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces of data objects' keys, below the prefix."""
        if self.template is not None:
            return self._parse(self.template)
        partition, offset = self.padding.numbers
        return partition_elements.build_lenses_pieces(
            self.partition_by,
            partition,
            replace(offset, name="last_offset") if self.connector_names else offset,
            include_keys=bool(self.include_keys),
            connector_names=self.connector_names,
            suffix=self.suffix,
        )

    @property
    def tombstone_pieces(self) -> tuple[Piece, ...] | None:
        """The pieces of keys of records without a value; None if they have no keys of their own."""
        return None if self.tombstones is None else self._parse(self.tombstones)
