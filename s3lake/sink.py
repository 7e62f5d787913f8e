"""The sink model: what the pipeline reads, whichever dialect a configuration was written in.

Frozen models on Dagster's `Model` and `Resolvable`, so one set of classes serves the YAML file, the Python API and the
YAML component. Every rule of validity that needs no broker and no bucket lives here.
"""

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, Any, Literal

import dagster as dg
from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, SecretStr, field_validator, model_validator

from s3lake import hours

_SIZES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SECRET = re.compile(r"password|secret|token|jaas|credential|\.key(\.|$)|apikey|api\.key", re.IGNORECASE)
MASK = "********"


def _size(value: Any) -> Any:
    found = re.fullmatch(r"\s*(\d+)\s*([A-Za-z]+)?\s*", value) if isinstance(value, str) else None
    if isinstance(value, str):
        unit = (found.group(2) or "B") if found else None
        if found is None or unit not in _SIZES:
            raise ValueError(f"{value!r} is no size: write bytes as a number, or with one of {', '.join(_SIZES)}")
        return int(found.group(1)) * _SIZES[unit]
    return value


def _duration(value: Any) -> Any:
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*", value)
        if found is None:
            raise ValueError(f"{value!r} is no duration: write a number with ms, s, m, h or d, for example 5m")
        return float(found.group(1)) * _SECONDS[found.group(2)]
    return value


def _size_text(value: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("MiB", 2**20), ("kB", 10**3)):
        if value and value % factor == 0:
            return f"{value // factor}{unit}"
    return f"{value}B"


def _duration_text(value: float) -> str:
    for unit in ("h", "m", "s"):
        if value and value % _SECONDS[unit] == 0:
            return f"{int(value // _SECONDS[unit])}{unit}"
    return f"{round(value * 1000)}ms"


def _masked(properties: dict[str, str]) -> dict[str, str]:
    return {name: MASK if is_secret(name) else value for name, value in properties.items()}


def is_secret(name: str) -> bool:
    """Whether a property of this name holds something that must never be printed."""
    return _SECRET.search(name) is not None


# Sizes are bytes (MB is 10^6, as connectors mean it; MiB is 2^20), durations are seconds.
Size = Annotated[int, BeforeValidator(_size), Field(gt=0), PlainSerializer(_size_text)]
Duration = Annotated[float, BeforeValidator(_duration), Field(ge=0), PlainSerializer(_duration_text)]
Properties = Annotated[dict[str, str], Field(repr=False), PlainSerializer(_masked)]


class Part(dg.Resolvable, dg.Model):
    """Base of every part of a configuration: frozen, unknown names refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, populate_by_name=True)


class Kafka(Part):
    """Where the topics are. `properties` are librdkafka's and the Java client's names, passed through to both."""

    bootstrap_servers: str = Field(min_length=1)
    properties: Properties = Field(default_factory=dict)

    @field_validator("properties")
    @classmethod
    def _ours(cls, value: dict[str, str]) -> dict[str, str]:
        for name in ("bootstrap.servers", "group.id", "isolation.level", "enable.auto.commit"):
            if name in value:
                raise ValueError(f"{name} is set by s3lake; take it out of kafka.properties")
        return value


class Credentials(Part):
    """Static keys. Without them boto3's own chain is used: environment, profile, instance role."""

    access_key_id: str
    secret_access_key: SecretStr
    session_token: SecretStr | None = None


class Retries(Part):
    """How often one S3 request is tried, and the first pause between tries (it doubles, with jitter)."""

    max_attempts: int = Field(default=5, ge=1)
    backoff_ms: int = Field(default=50, ge=0)


class S3(Part):
    """The S3 API that the bucket lives behind; the fields map onto `dagster_aws.s3.S3Resource`."""

    endpoint_url: str | None = None
    region: str = "us-east-1"
    path_style: bool = True
    max_pool_connections: int = Field(default=50, ge=1)
    credentials: Literal["default"] | Credentials = "default"
    retries: Retries = Field(default_factory=Retries)


class Spark(Part):
    """The Spark session. `conf` overrides every setting that s3lake makes itself."""

    master: str = "local[*]"
    driver_memory: str = Field(default="1g", pattern=r"^\d+[kmgKMG]$")
    conf: Properties = Field(default_factory=dict)


class Converter(Part):
    """How bytes become a key and a value (Kafka Connect's word)."""

    key: Literal["json", "string", "bytes"] = "string"
    value: Literal["json", "string", "bytes"] = "json"


_CODECS = {"json": ("none", "gzip", "zstd"), "text": ("none", "gzip", "zstd"), "parquet": ("none", "gzip", "snappy", "zstd")}
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
        if self.codec not in _CODECS[self.type]:
            raise ValueError(
                f"codec {self.codec} cannot be used with format {self.type}: use one of {', '.join(_CODECS[self.type])}"
            )
        if self.level is not None:
            if self.codec not in _LEVELS:
                raise ValueError(f"level {self.level}: codec {self.codec} has no levels; take it out")
            low, high = _LEVELS[self.codec]
            if not low <= self.level <= high:
                raise ValueError(f"level {self.level}: codec {self.codec} takes {low} to {high}")
        return self

    @property
    def extension(self) -> str:
        """The file extension: text formats add the codec, Parquet keeps it inside the file."""
        codec = {"gzip": ".gz", "zstd": ".zst"}.get(self.codec, "") if self.type != "parquet" else ""
        return f".{self.type}{codec}"


class Padding(Part):
    """Padding of the topic-partition and of the offset in keys; it never cuts a number."""

    type: Literal["left", "right", "none"] = "left"
    char: str = Field(default="0", min_length=1, max_length=1)
    partition: int = Field(default=0, ge=0)
    offset: int = Field(default=12, ge=0)


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
        if "/" in value or "~" in value:
            raise ValueError(f"{value!r} may hold neither '/' nor '~' (the mark of a replacing commit)")
        return value

    @field_validator("partition_by")
    @classmethod
    def _elements(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        from s3lake.layout import partitioners

        for element in value:
            partitioners.parse(element)
        return value


class Flush(Part):
    """When a file is closed (count, size) and when a quiet topic is landed all the same (interval)."""

    count: int = Field(default=50_000, gt=0)
    size: Size = 500_000_000
    interval: Duration = 3600.0


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
            raise ValueError("the index needs a prefix of its own, for example .indexes")
        return value.strip("/")


class Sink(Part):
    """One configured route: topics to bucket, prefix, layout and format."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    topics: tuple[str, ...] = ()
    topics_regex: str | None = None
    bucket: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
    prefix: str = ""
    start: str
    from_: Literal["start", "earliest"] = Field(default="start", alias="from")
    converter: Converter = Field(default_factory=Converter)
    format: Format = Field(default_factory=Format)
    layout: Layout = Field(default_factory=Layout)
    flush: Flush = Field(default_factory=Flush)
    nulls: Literal["skip", "fail", "write"] = "skip"
    errors: Errors = Field(default_factory=Errors)
    exactly_once: bool = True
    close_grace: Duration = 300.0
    batch_records: int = Field(default=20_000_000, gt=0)
    hours_per_run: int | None = Field(default=24, gt=0)
    memory_budget: Size = 512_000_000
    index: Index = Field(default_factory=Index)

    @field_validator("start", mode="before")
    @classmethod
    def _hour(cls, value: Any) -> Any:
        hours.parse(value)
        return value

    @field_validator("topics")
    @classmethod
    def _topic_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for topic in value:
            if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", topic) or topic in (".", ".."):
                raise ValueError(f"{topic!r} is no Kafka topic name: letters, digits, '.', '_' and '-', at most 249")
        if len(set(value)) != len(value):
            raise ValueError("a topic is named twice")
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

    @model_validator(mode="after")
    def _combinations(self) -> "Sink":
        if bool(self.topics) == (self.topics_regex is not None):
            raise ValueError("a sink reads either topics or topics_regex: give exactly one of them")
        from s3lake.layout import partitioners

        for element in map(partitioners.parse, self.layout.partition_by):
            for source, converter in (("value", self.converter.value), ("key", self.converter.key)):
                if element.source == source and element.path and converter != "json":
                    raise ValueError(
                        f"layout.partition_by {element.text!r} needs a field of the {source}, which converter.{source} "
                        f"{converter} does not give: set converter.{source} to json or partition by something else"
                    )
        if self.memory_budget < 64_000_000:
            raise ValueError(f"memory_budget {_size_text(self.memory_budget)}: a worker needs at least 64MB")
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
    sinks: tuple[Sink, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sinks_apart(self) -> "Config":
        for one, other in combinations(self.sinks, 2):
            if one.name == other.name:
                raise ValueError(f"two sinks are called {one.name!r}: their index would be one")
            if one.name.replace("-", "_") == other.name.replace("-", "_"):
                raise ValueError(f"sinks {one.name!r} and {other.name!r} get one name in Dagster: rename one")
            if may_collide(one, other):
                raise ValueError(
                    f"sinks {one.name!r} and {other.name!r} can write the same object keys in bucket {one.bucket!r}: "
                    "give one of them another prefix or layout.suffix"
                )
        return self

    def sink(self, name: str) -> Sink:
        """The sink called `name`.

        Raises:
            KeyError: there is none.
        """
        return next(sink for sink in self.sinks if sink.name == name)


def may_collide(one: Sink, other: Sink) -> bool:
    """Whether two sinks can give two objects the same key."""
    if one.bucket != other.bucket or not _share_topic(one, other):
        return False
    if (one.layout.suffix, one.format.extension) != (other.layout.suffix, other.format.extension):
        return False
    if bool(one.layout.partition_by) != bool(other.layout.partition_by):
        return False  # `OFFSET.ext` against `topic(PARTITION_OFFSET).ext`
    if not one.layout.partition_by:
        return one.root == other.root
    return one.root.startswith(other.root) or other.root.startswith(one.root)


def _share_topic(one: Sink, other: Sink) -> bool:
    if one.topics_regex is not None and other.topics_regex is not None:
        return True  # two expressions can always meet in a topic that does not exist yet
    return any(map(other.reads, one.topics)) or any(map(one.reads, other.topics))


def sinks_of(topic: str, sinks: Sequence[Sink]) -> list[Sink]:
    """The sinks that land `topic`, in their order."""
    return [sink for sink in sinks if sink.reads(topic)]
