"""How Kafka and Spark are reached."""

from typing import Annotated

from pydantic import Field, PlainSerializer, field_validator

from s3lake.sink.model import ConfigModel, Properties, RuleError, matches
from s3lake.text.masking import mask_value

_MASKED = PlainSerializer(lambda value: mask_value("master", value))  # of Spark Connect it may contain a token
_SERVER = r"\s*(\w+://)?([^\s:/,]+|\[[0-9A-Fa-f:.]+\]):\d+\s*"
_SERVERS = matches(f"{_SERVER}(,{_SERVER})*", "write HOST:PORT, several with commas")
_OURS = ("bootstrap.servers", "group.id", "isolation.level", "enable.auto.commit")


class Kafka(ConfigModel):
    """The servers of the topics. `properties` are librdkafka's; those of the Java client are translated or refused.

    Attributes:
        bootstrap_servers: `HOST:PORT`, several with commas.
        properties: of librdkafka, by its names: security, timeouts, sizes.
    """

    bootstrap_servers: Annotated[str, _SERVERS] = Field(examples=["localhost:9092"])
    properties: Properties = Field(default_factory=dict, repr=False)

    @field_validator("properties")
    @classmethod
    def _check_properties(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if name in _OURS:
                remedy = "use kafka.bootstrap_servers" if name == "bootstrap.servers" else "take it out"
                raise RuleError(f"{name} is set by s3lake: {remedy}", name)
        return value


class Spark(ConfigModel):
    """The Spark session. `conf` overrides every setting that s3lake makes itself.

    Attributes:
        master: `local[n]`, a cluster's master, or `sc://HOST:PORT` for a server of warm sessions.
        driver_memory: the JVM's heap, for example 1g.
        conf: any setting of Spark's; it overrides s3lake's own.
    """

    master: Annotated[str, _MASKED] = Field(default="local[*]", repr=False)
    driver_memory: Annotated[str, matches(r"[1-9]\d*[kmgKMG]", "a number with k, m or g, for example 1g")] = "1g"
    conf: Properties = Field(default_factory=dict, repr=False)
