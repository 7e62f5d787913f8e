"""How Kafka, another source of topics, and Spark are reached."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, SecretStr, field_validator, model_validator

from s3lake.config.model.base import ConfigModel, Options, Properties, RuleError, matches
from s3lake.text.masking import mask_value

_MASKED = PlainSerializer(lambda value: mask_value("master", value))  # of Spark Connect it may contain a token
_SERVER = r"\s*(\w+://)?([^\s:/,]+|\[[0-9A-Fa-f:.]+\]):\d+\s*"
_SERVERS = matches(f"{_SERVER}(,{_SERVER})*", "write HOST:PORT, several with commas")
_ADDRESS = matches(r"([^\s:/,@]+|\[[0-9A-Fa-f:.]+\]):\d+", "write HOST:PORT, without a user")
_MASTER = re.compile(
    r"local(\[(\*|\d+)(,\s*\d+)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|yarn|[a-z][a-z0-9+.-]*://[^\s/].*"
)
"""Spark's own, and what a cluster manager's plugin may add: an address of its own scheme."""
_OURS = ("bootstrap.servers", "group.id", "isolation.level", "enable.auto.commit")


class Kafka(ConfigModel):
    """The topics' servers. `properties` are librdkafka's; properties of the Java client are translated or refused.

    Attributes:
        bootstrap_servers: `HOST:PORT`, several with commas.
        properties: the properties of librdkafka, by its names: security, timeouts, sizes.
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


class Source(ConfigModel):
    """The place of the topics, if it is not Kafka: an Iggy server, or a plugin.

    Attributes:
        type: `iggy`, or the name of a plugin's entry point in the group `s3lake.sources`.
        address: `HOST:PORT` of the server, its listener for `transport`.
        transport: the protocol of the client.
        username: the name of a user who may read the topics and poll their messages.
        password: the password of that user; never printed.
        token: a personal access token instead of both; never printed. Not over HTTP, whose client cannot log in by it.
        tls: true if the connection is encrypted, and the server's certificate checked.
        ca_file: certificates of those who sign the server's, if the machine's are not enough; on every worker.
        domain: the name in the certificate, if it is not that of the address.
        options: the settings of a plugin; secrets among them are never printed.
    """

    type: str = Field(examples=["iggy"])
    address: Annotated[str, _ADDRESS] | None = Field(default=None, examples=["localhost:8090"])
    transport: Literal["tcp", "quic", "http", "websocket"] = "tcp"
    username: str | None = None
    password: SecretStr | None = Field(default=None, examples=["${IGGY_PASSWORD}"])
    token: SecretStr | None = None
    tls: bool = False
    ca_file: str | None = None
    domain: str | None = None
    options: Options = Field(default_factory=dict, repr=False)

    @field_validator("type")
    @classmethod
    def _check_type(cls, value: str) -> str:
        if value == "kafka":
            raise ValueError("Kafka has a place of its own: write kafka: {bootstrap_servers: ...} instead of source")
        return value

    @model_validator(mode="after")
    def _check_together(self) -> "Source":
        if self.type != "iggy":
            for name, setting in type(self).model_fields.items():
                if name not in ("type", "options") and getattr(self, name) != setting.default:
                    raise RuleError(f"is of type iggy; the settings of {self.type} are in options", name)
            return self
        if self.options:
            raise RuleError("are of plugins; the settings of iggy are address, username and the others", "options")
        if self.address is None:
            raise RuleError("address is missing: write HOST:PORT of the server, for example localhost:8090")
        if (self.username is None) != (self.password is None):
            raise RuleError("username and password belong together: give both, or a token")
        if self.token is not None and (self.username is not None or self.transport == "http"):
            raise RuleError("replaces username and password, and HTTP does not take it: take it out, or them", "token")
        if not self.tls:
            for name in ("ca_file", "domain"):
                if getattr(self, name) is not None:
                    raise RuleError("is of an encrypted connection: write tls: true, or take it out", name)
        elif self.transport in ("http", "quic") and self.ca_file is not None:
            raise RuleError(
                f"is used over tcp and websocket only; {self.transport} uses the machine's certificates: take it out",
                "ca_file",
            )
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """The plain values that the source is opened with, secrets among them."""
        if self.type != "iggy":
            return dict(self.options)
        names = ("address", "transport", "username", "password", "token", "tls", "ca_file", "domain")
        values = {name: getattr(self, name) for name in names}
        return {name: v.get_secret_value() if isinstance(v, SecretStr) else v for name, v in values.items()}


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

    @field_validator("master")
    @classmethod
    def _check_master(cls, value: str) -> str:
        if not _MASTER.fullmatch(value):
            raise ValueError(
                f"{mask_value('master', value)!r} is not a master of Spark: write local[N], local[*], yarn, "
                "spark://HOST:PORT, k8s://HOST:PORT, or sc://HOST:PORT for a server of warm sessions"
            )
        return value
