"""The sink model: what the pipeline reads, whichever dialect a configuration was written in.

Frozen models on Dagster's `Model` and `Resolvable`, so one set of classes serves the YAML file, the Python API and the
YAML component. Every rule of validity that needs no broker and no bucket lives here.

Rules are validators of the class, never constraints of the field: Dagster derives a second model from the fields, whose
values may still be templates.
"""

import re
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Annotated, Any, Literal

import dagster as dg
from pydantic import ConfigDict, Field, SecretStr, ValidationInfo, field_serializer, field_validator, model_validator

from s3lake import hours
from s3lake.masking import masked
from s3lake.quantities import duration_text, seconds_of, size_of, size_text

# S3 takes keys of 1,024 bytes. A topic has at most 249; these leave room for it, numbers and the mark of a commit.
_PREFIX_BYTES, _SUFFIX_BYTES, _NAME_CHARACTERS, _PADDED = 480, 64, 100, 64
_LARGEST_FILE = 80 * 10**9  # 10,000 parts of 8 MiB


class Misfit(ValueError):
    """A rule is broken at `path`, seen from the model or the field that noticed it."""

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.path = path


def _at_least(low: float) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value is not None and not low <= value < float("inf"):
            raise ValueError(f"{value} is out of range: at least {low}")
        return value

    return check


def _matching(pattern: str, rule: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"{value!r} is not allowed: {rule}")
        return value

    return check


def _plain_path(value: str) -> str:
    """A prefix whose objects every S3 client finds: `//`, `.` and `..` mean something else to some."""
    steps = value.removesuffix("/").split("/")
    if value and (not all(steps) or {".", "..", "_dead_letters"} & set(steps) or not value.isprintable()):
        raise ValueError(
            f"{value!r} is not allowed: no leading or double '/', no '.', '..' or '_dead_letters' between slashes, "
            "no control characters; for example raw/kafka"
        )
    if len(value.encode()) > _PREFIX_BYTES:
        raise ValueError(f"{value[:40]!r}… is too long: at most {_PREFIX_BYTES} bytes, or keys exceed S3's 1,024")
    return value


def _secret(context: dg.ResolutionContext, value: str) -> SecretStr:
    return SecretStr(context.resolve_value(value, as_type=str))


Secret = Annotated[SecretStr, dg.Resolver(_secret, model_field_type=str)]


class Part(dg.Resolvable, dg.Model):
    """Base of every part of a configuration: frozen, unknown names refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, populate_by_name=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any, info: ValidationInfo) -> Any:
        field = cls.model_fields[str(info.field_name)]
        if isinstance(value, bool) and field.annotation in (int, float, int | None):
            raise ValueError(f"{str(value).lower()} is no number")
        return value


class Kafka(Part):
    """Where the topics are. `properties` are librdkafka's and the Java client's names, passed through to both."""

    bootstrap_servers: str = Field(examples=["localhost:9092"])
    properties: dict[str, str] = Field(default_factory=dict, repr=False)

    _hide = field_serializer("properties")(masked)

    @field_validator("bootstrap_servers")
    @classmethod
    def _some_server(cls, value: str) -> str:
        for server in value.split(","):
            if not re.fullmatch(r"\s*(\w+://)?([^\s:/,]+|\[[0-9A-Fa-f:.]+\]):\d+\s*", server):
                raise ValueError(f"{value!r} is no list of servers: write HOST:PORT, several with commas")
        return value

    @field_validator("properties")
    @classmethod
    def _ours(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            plain = name.removeprefix("client.").removeprefix("spark.")
            if plain in ("bootstrap.servers", "group.id", "isolation.level", "enable.auto.commit"):
                remedy = "use kafka.bootstrap_servers" if plain == "bootstrap.servers" else "take it out"
                raise Misfit(f"{plain} is set by s3lake: {remedy}", name)
        return value


class Credentials(Part):
    """Static keys. Without them boto3's own chain is used: environment, profile, instance role."""

    access_key_id: str = Field(examples=["${AWS_ACCESS_KEY_ID}"])
    secret_access_key: Secret = Field(examples=["${AWS_SECRET_ACCESS_KEY}"])
    session_token: Secret | None = None


class Retries(Part):
    """How often one S3 request is tried, and the first pause between tries (it doubles, with jitter)."""

    max_attempts: int = 5
    backoff_ms: int = 50

    _some = field_validator("max_attempts")(_at_least(1))
    _forward = field_validator("backoff_ms")(_at_least(0))


class S3(Part):
    """The S3 API that the bucket lives behind; the fields map onto `dagster_aws.s3.S3Resource`."""

    endpoint_url: str | None = None
    region: str = "us-east-1"
    path_style: bool = True
    max_pool_connections: int = 50
    credentials: Literal["default"] | Credentials = "default"
    retries: Retries = Field(default_factory=Retries)

    _some = field_validator("max_pool_connections")(_at_least(1))

    @field_validator("endpoint_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is not None and "@" in value:
            raise ValueError("a URL with user and password is printed in logs: give them in s3.credentials")
        if value is not None and not re.fullmatch(r"https?://[^/?#\s]+/?", value):
            raise ValueError(f"{value!r} is no endpoint: write http://HOST:PORT or https://HOST, without a path")
        return value


class Spark(Part):
    """The Spark session. `conf` overrides every setting that s3lake makes itself."""

    master: str = "local[*]"
    driver_memory: str = "1g"
    conf: dict[str, str] = Field(default_factory=dict, repr=False)

    _memory = field_validator("driver_memory")(
        _matching(r"[1-9]\d*[kmgKMG]", "a number with k, m or g, for example 1g")
    )
    _hide = field_serializer("conf")(masked)


class Converter(Part):
    """How bytes become a key and a value (Kafka Connect's word)."""

    key: Literal["json", "string", "bytes"] = "string"
    value: Literal["json", "string", "bytes"] = "json"


_CODECS = {
    "json": ("none", "gzip", "zstd"),
    "text": ("none", "gzip", "zstd"),
    "parquet": ("none", "gzip", "snappy", "zstd"),
}
_LEVELS = {"gzip": (1, 9), "zstd": (1, 22)}


class Format(Part):
    """The file format and its compression. Without a codec: zstd for Parquet, none for the text formats."""

    type: Literal["json", "parquet", "text"] = "json"
    codec: Literal["none", "gzip", "snappy", "zstd"] = "none"
    level: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_codec(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("codec") is None:
            return {**data, "codec": "zstd" if data.get("type") == "parquet" else "none"}
        return data

    @model_validator(mode="after")
    def _fits(self) -> "Format":
        allowed = ", ".join(_CODECS[self.type])
        if self.codec not in _CODECS[self.type]:
            raise Misfit(f"codec {self.codec} cannot be used with format {self.type}: use one of {allowed}", "codec")
        if self.level is not None:
            if self.codec not in _LEVELS:
                raise Misfit(f"{self.level}: codec {self.codec} has no levels; take it out", "level")
            low, high = _LEVELS[self.codec]
            if not low <= self.level <= high:
                raise Misfit(f"{self.level} is out of range: codec {self.codec} takes {low} to {high}", "level")
        return self

    @property
    def extension(self) -> str:
        """The file extension: text formats add the codec, Parquet keeps it inside the file."""
        codec = {"gzip": ".gz", "zstd": ".zst"}.get(self.codec, "") if self.type != "parquet" else ""
        return f".{self.type}{codec}"


class Padding(Part):
    """Padding of the topic-partition and of the offset in keys; it never cuts a number."""

    type: Literal["left", "right", "none"] = "left"
    char: str = "0"
    partition: int = 0
    offset: int = 12

    @field_validator("char")
    @classmethod
    def _one_character(cls, value: str) -> str:
        if len(value) != 1 or not value.isascii() or not value.isprintable() or value in "/\\~":
            raise ValueError(f"{value!r} is not allowed: one printable ASCII character, neither '/', '\\' nor '~'")
        return value

    @field_validator("partition", "offset")
    @classmethod
    def _length(cls, value: int) -> int:
        if not 0 <= value <= _PADDED:
            raise ValueError(f"{value} is out of range: 0 to {_PADDED}")
        return value

    @model_validator(mode="after")
    def _tells_numbers_apart(self) -> "Padding":
        harmless = "0" if self.type == "left" else ""
        if (
            self.type != "none"
            and max(self.partition, self.offset) > 1
            and self.char.isdigit()
            and self.char != harmless
        ):
            example = "1 and 10" if self.char == "0" else f"1 and {self.char}1"
            raise Misfit(
                f"{self.char!r} with padding.type {self.type} can make one key of two offsets ({example}): use another "
                "character, or type left with '0'",
                "char",
            )
        return self


class Layout(Part):
    """The rule that gives an object its key."""

    type: Literal["lenses"] = "lenses"
    partition_by: tuple[str, ...] = ()
    include_keys: bool | None = None
    padding: Padding = Field(default_factory=Padding)
    suffix: str = ""

    @model_validator(mode="before")
    @classmethod
    def _keys_follow_partitioner(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("include_keys") is None:
            return {**data, "include_keys": bool(data.get("partition_by"))}
        return data

    @field_validator("suffix")
    @classmethod
    def _one_name(cls, value: str) -> str:
        if "/" in value or "~" in value or not value.isprintable() or len(value.encode()) > _SUFFIX_BYTES:
            raise ValueError(
                f"{value[:80]!r} is not allowed: at most {_SUFFIX_BYTES} bytes, neither '/' nor '~' (the mark of a "
                "replacing commit), no control characters"
            )
        return value

    @field_validator("partition_by")
    @classmethod
    def _elements(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        from s3lake.layout import partitioners

        for position, element in enumerate(value):
            try:
                partitioners.parse(element)
            except ValueError as error:
                raise Misfit(str(error), position) from None
        return value


class Flush(Part):
    """When a file is closed (count, size) and when a quiet topic is landed all the same (interval).

    Sizes are bytes (MB is 10^6, as connectors mean it; MiB is 2^20), durations are seconds.
    """

    count: int = 50_000
    size: int = 500_000_000
    interval: float = 3600.0

    _bytes = field_validator("size", mode="before")(size_of)
    _seconds = field_validator("interval", mode="before")(seconds_of)
    _some = field_validator("count", "size")(_at_least(1))
    _forward = field_validator("interval")(_at_least(0))
    _size_shown = field_serializer("size")(size_text)
    _interval_shown = field_serializer("interval")(duration_text)

    @field_validator("size")
    @classmethod
    def _uploadable(cls, value: int) -> int:
        if value > _LARGEST_FILE:
            raise ValueError(f"{size_text(value)} is out of range: a file can be at most {size_text(_LARGEST_FILE)}")
        return value


class Errors(Part):
    """What a refused record does: fail its micro-batch, or become a dead letter in the same commit."""

    tolerance: Literal["none", "all"] = "none"


class Index(Part):
    """Where the index lives: `<prefix>/<sink name>/` in the sink's bucket."""

    prefix: str = ".indexes"

    @field_validator("prefix")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not value.strip("/"):
            raise ValueError(f"{value!r}: the index needs a prefix of its own, for example .indexes")
        return _plain_path(value.strip("/"))


class Sink(Part):
    """One configured route: topics to bucket, prefix, layout and format."""

    name: str = Field(examples=["events"])
    topics: tuple[str, ...] = ()
    topics_regex: str | None = None
    bucket: str = Field(examples=["lake"])
    prefix: str = ""
    start: str = Field(examples=["2026-11-20T00"])
    from_: Annotated[Literal["start", "earliest"], dg.Resolver(lambda _, value: value, model_field_name="from")] = (
        Field(default="start", alias="from")
    )
    converter: Converter = Field(default_factory=Converter)
    format: Format = Field(default_factory=Format)
    layout: Layout = Field(default_factory=Layout)
    flush: Flush = Field(default_factory=Flush)
    nulls: Literal["skip", "fail", "write"] = "skip"
    errors: Errors = Field(default_factory=Errors)
    exactly_once: bool = True
    close_grace: float = 300.0
    batch_records: int = 20_000_000
    hours_per_run: int | None = 24
    memory_budget: int = 512_000_000
    index: Index = Field(default_factory=Index)

    _called = field_validator("name")(
        _matching(rf"[A-Za-z0-9_-]{{1,{_NAME_CHARACTERS}}}", f"1 to {_NAME_CHARACTERS} of A-Z, a-z, 0-9, '_' and '-'")
    )
    _bucket_name = field_validator("bucket")(
        _matching(r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "a bucket has 3 to 63 of a-z, 0-9, '-' and single '.'")
    )
    _prefix = field_validator("prefix")(_plain_path)
    _bytes = field_validator("memory_budget", mode="before")(size_of)
    _seconds = field_validator("close_grace", mode="before")(seconds_of)
    _some = field_validator("batch_records", "hours_per_run")(_at_least(1))
    _forward = field_validator("close_grace")(_at_least(0))
    _budget_shown = field_serializer("memory_budget")(size_text)
    _grace_shown = field_serializer("close_grace")(duration_text)

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

    @field_validator("topics_regex")
    @classmethod
    def _regex(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"{value!r} is no regular expression: {error}") from None
        return value

    @field_validator("memory_budget")
    @classmethod
    def _room_for_work(cls, value: int) -> int:
        if value < 64_000_000:
            raise ValueError(f"{size_text(value)} is out of range: a worker needs at least 64MB")
        return value

    @model_validator(mode="after")
    def _combinations(self) -> "Sink":
        if bool(self.topics) == (self.topics_regex is not None):
            raise Misfit("a sink reads either topics or topics_regex: give exactly one of them")
        from s3lake.layout import partitioners

        for position, element in enumerate(map(partitioners.parse, self.layout.partition_by)):
            for source, converter in (("value", self.converter.value), ("key", self.converter.key)):
                if element.source == source and element.path and converter != "json":
                    raise Misfit(
                        f"{element.text!r} needs a field of the {source}, which converter.{source} {converter} does "
                        f"not give: set converter.{source} to json or partition by something else",
                        *("layout", "partition_by", position),
                    )
        return self

    @property
    def root(self) -> str:
        """The prefix as keys begin with it: empty, or ending in one slash."""
        return self.prefix.rstrip("/") + "/" if self.prefix.strip("/") else ""

    def reads(self, topic: str) -> bool:
        """Whether this sink lands `topic`."""
        return topic in self.topics or (
            self.topics_regex is not None and re.fullmatch(self.topics_regex, topic) is not None
        )


class Config(Part):
    """A whole native configuration."""

    kafka: Kafka
    s3: S3 = Field(default_factory=S3)
    spark: Spark = Field(default_factory=Spark)
    sinks: tuple[Sink, ...]
    examples: bool = False

    @field_validator("sinks")
    @classmethod
    def _some_sink(cls, value: tuple[Sink, ...]) -> tuple[Sink, ...]:
        if not value:
            raise ValueError("at least one sink is needed, with name, topics, bucket and start")
        return value

    @model_validator(mode="after")
    def _sinks_apart(self) -> "Config":
        for (_, one), (position, other) in combinations(enumerate(self.sinks), 2):
            if one.name == other.name:
                raise Misfit(f"two sinks are called {one.name!r}: their index would be one", "sinks", position, "name")
            if one.name.replace("-", "_") == other.name.replace("-", "_"):
                message = f"sinks {one.name!r} and {other.name!r} get one name in Dagster: rename one"
                raise Misfit(message, "sinks", position, "name")
            if may_collide(one, other):
                raise Misfit(
                    f"sinks {one.name!r} and {other.name!r} can write the same object keys in bucket {one.bucket!r}: "
                    "give one of them another prefix or layout.suffix",
                    *("sinks", position),
                )
        for position, sink in enumerate(self.sinks):
            for other in self.sinks:
                if sink.bucket == other.bucket and sink.root.startswith(f"{other.index.prefix}/"):
                    raise Misfit(
                        f"{sink.prefix!r} lies in the index of sink {other.name!r}: give another prefix, or another "
                        "index.prefix",
                        *("sinks", position, "prefix"),
                    )
        return self

    def sink(self, name: str) -> Sink:
        """The sink called `name`.

        Raises:
            KeyError: there is none.
        """
        for sink in self.sinks:
            if sink.name == name:
                return sink
        raise KeyError(f"no sink is called {name!r}; there are {', '.join(sink.name for sink in self.sinks)}")


def may_collide(one: Sink, other: Sink) -> bool:
    """Whether two sinks can give two objects the same key."""
    if one.bucket != other.bucket or not _share_topic(one, other):
        return False
    if bool(one.layout.partition_by) != bool(other.layout.partition_by):
        return False  # `OFFSET.ext` against `topic(PARTITION_OFFSET).ext`
    if _ending(one) != _ending(other):
        return False
    if not one.layout.partition_by:
        return one.root == other.root
    return one.root.startswith(other.root) or other.root.startswith(one.root)


def _ending(sink: Sink) -> str:
    # Without a parenthesis between them, digits that begin a suffix can be read as the offset's.
    suffix = sink.layout.suffix if sink.layout.partition_by else sink.layout.suffix.lstrip("0123456789")
    return suffix + sink.format.extension


def _share_topic(one: Sink, other: Sink) -> bool:
    if one.topics_regex is not None and other.topics_regex is not None:
        return True  # two expressions can always meet in a topic that does not exist yet
    return any(map(other.reads, one.topics)) or any(map(one.reads, other.topics))


def sinks_of(topic: str, sinks: Sequence[Sink]) -> list[Sink]:
    """The sinks that land `topic`, in their order."""
    return [sink for sink in sinks if sink.reads(topic)]
