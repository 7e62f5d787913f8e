"""What a configuration says of where the topics are, if that is not Kafka."""

import re
from typing import Any, Literal

from pydantic import Field, SecretStr, field_serializer, field_validator, model_validator

from s3lake.sink.part import Misfit, Part
from s3lake.text.masking import masked


class Source(Part):
    """Where the topics are, if not in Kafka: an Iggy server, or what a plugin reads.

    Attributes:
        type: `iggy`, or the name of a plugin's entry point in the group `s3lake.sources`.
        address: `HOST:PORT` of the server, its listener for `transport`.
        transport: how the server is spoken to.
        username: of a user who may read the topics and poll their messages.
        password: of that user; never printed.
        token: a personal access token instead of both; never printed. Not over HTTP, whose client cannot log in by it.
        tls: whether the connection is encrypted, and the server's certificate checked.
        ca_file: who the certificate is signed by, where the machine does not know; a path that every worker has.
        domain: whom the certificate is of, where that is not the address.
        options: of a plugin; secrets among them are never printed.
    """

    type: str = Field(examples=["iggy"])
    address: str | None = Field(default=None, examples=["localhost:8090"])
    transport: Literal["tcp", "quic", "http", "websocket"] = "tcp"
    username: str | None = None
    password: SecretStr | None = Field(default=None, examples=["${IGGY_PASSWORD}"])
    token: SecretStr | None = None
    tls: bool = False
    ca_file: str | None = None
    domain: str | None = None
    options: dict[str, Any] = Field(default_factory=dict, repr=False)

    _hide = field_serializer("options")(masked)

    @field_validator("type")
    @classmethod
    def _not_kafka(cls, value: str) -> str:
        if value == "kafka":
            raise ValueError("Kafka has a place of its own: write kafka: {bootstrap_servers: ...} instead of source")
        return value

    @field_validator("address")
    @classmethod
    def _one_server(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"([^\s:/,@]+|\[[0-9A-Fa-f:.]+\]):\d+", value):
            raise ValueError(f"{value!r} is no address: write HOST:PORT, without a user")
        return value

    @model_validator(mode="after")
    def _agree(self) -> "Source":
        if self.type != "iggy":
            for name, setting in type(self).model_fields.items():
                if name not in ("type", "options") and getattr(self, name) != setting.default:
                    raise Misfit(f"is of type iggy; what {self.type} is told stands in options", name)
            return self
        if self.options:
            raise Misfit("are of plugins; iggy is told by address, username and the others", "options")
        if self.address is None:
            raise Misfit("address is missing: write HOST:PORT of the server, for example localhost:8090")
        if (self.username is None) != (self.password is None):
            raise Misfit("username and password belong together: give both, or a token")
        if self.token is not None and (self.username is not None or self.transport == "http"):
            raise Misfit("stands for username and password, and not over HTTP: take it out, or them", "token")
        if not self.tls:
            for name in ("ca_file", "domain"):
                if getattr(self, name) is not None:
                    raise Misfit("is of an encrypted connection: write tls: true, or take it out", name)
        elif self.transport in ("http", "quic") and self.ca_file is not None:
            raise Misfit(f"is known over tcp and websocket only: over {self.transport} the machine's count", "ca_file")
        return self

    @property
    def settings(self) -> dict[str, Any]:
        """What the source is opened with: plain values, secrets among them."""
        if self.type != "iggy":
            return dict(self.options)
        names = ("address", "transport", "username", "password", "token", "tls", "ca_file", "domain")
        values = {name: getattr(self, name) for name in names}
        return {name: one.get_secret_value() if isinstance(one, SecretStr) else one for name, one in values.items()}
