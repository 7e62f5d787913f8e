"""How bytes become keys and values, and where their schemas are."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from s3lake.config.model.base import ConfigModel, Duration, RuleError, lasts_at_least, one_of
from s3lake.errors import ConfigurationError
from s3lake.records.convert.read.converters import CONVERTERS, list_in_words

if TYPE_CHECKING:
    from s3lake.records.schema.registry.registry_connection import Connection

ConverterType = Annotated[str, one_of(CONVERTERS)]


class Registry(ConfigModel):
    """A Schema Registry with Confluent's API: Confluent's own, or Apicurio's under `/apis/ccompat/v7`.

    Protobuf needs none if `descriptor_set` and `message` are given, and Avro none with `schema_file`.

    Attributes:
        url: the base of its API; several addresses of one registry with commas, the first that answers is used.
        user: the user of basic authentication.
        password: never printed.
        token: sent as `Authorization: Bearer`, instead of user and password.
        ca_file: certificates to trust, instead of the usual ones; like the other files it must exist on every worker.
        cert_file: PEM, if the registry requires a certificate of its clients.
        key_file: its key, PEM; it may be in the same file.
        timeout: the longest time for connecting, and again for the whole answer to one request, in seconds.
        descriptor_set: a file of Protobuf's descriptors instead of a registry, as `protoc --include_imports
            --descriptor_set_out` writes it; it is read when the configuration is.
        message: the name of the message that every value is, with its package.
        schema_file: a file with one schema of Avro instead of a registry: every value is a datum of it and nothing
            else; it is read when the configuration is.
        times: the former place of `converter.times`, which means the same.
    """

    url: str = Field(default="", examples=["http://localhost:8081"])
    user: str | None = None
    password: SecretStr | None = Field(default=None, examples=["${REGISTRY_PASSWORD}"])
    token: SecretStr | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    timeout: Annotated[Duration, lasts_at_least(0.001)] = 10.0
    descriptor_set: str | None = None
    message: str | None = None
    schema_file: str | None = None
    times: Literal["connect", "exact"] = "connect"

    @field_validator("url")
    @classmethod
    def _check_urls(cls, value: str) -> str:
        if "@" in value:
            raise ValueError("a URL with user and password is printed in logs: give them in user and password")
        for address in value.split(",") if value else ():
            if not re.fullmatch(r"https?://[^/?#\s,]+(/[^?#\s,]*)?", address.strip()):
                raise ValueError(
                    f"{value!r} is not an address of a registry: write http://HOST:PORT or https://HOST/PATH, several "
                    "with commas"
                )
        return value

    @model_validator(mode="after")
    def _check_together(self) -> "Registry":
        ways = {"url": self.url, "descriptor_set": self.descriptor_set, "schema_file": self.schema_file}
        ways_given = [name for name, value in ways.items() if value]
        if len(ways_given) != 1:
            there = f"{' and '.join(ways_given)} are given" if ways_given else f"{', '.join(ways)} are missing"
            raise RuleError(f"{there}: give one of them", "url")
        if (self.message is None) != (self.descriptor_set is None):
            raise RuleError("message names the type of a descriptor_set's values: give both, or neither", "message")
        if (self.user is None) != (self.password is None):
            there, missing = ("user", "password") if self.password is None else ("password", "user")
            raise RuleError(f"{there} is given without {missing}: give both, or neither", missing)
        if self.token is not None and self.user is not None:
            raise RuleError("a request takes either a token or user and password: take one out", "token")
        if self.key_file is not None and self.cert_file is None:
            raise RuleError("a key belongs to a certificate: give cert_file too", "cert_file")
        return self

    @property
    def urls(self) -> tuple[str, ...]:
        """Each address of the registry."""
        return tuple(one.strip() for one in self.url.split(",")) if self.url else ()

    @property
    def connection(self) -> "Connection":
        """The connection as plain values, which are sent to the workers."""
        from s3lake.records.schema.registry.registry_connection import Connection

        advice = "give the file of an Avro schema, JSON"
        try:
            avro = self._read_file("schema_file", advice).decode()
        except UnicodeDecodeError:
            where = f"converter.registry.schema_file {self.schema_file}"
            raise ConfigurationError(f"{where}: not UTF-8: {advice}") from None
        return Connection(
            urls=self.urls,
            user=self.user,
            password=self.password.get_secret_value() if self.password else None,
            token=self.token.get_secret_value() if self.token else None,
            ca_file=self.ca_file,
            cert_file=self.cert_file,
            key_file=self.key_file,
            timeout=self.timeout,
            descriptors=self._read_file(
                "descriptor_set", "write the file with protoc --include_imports --descriptor_set_out"
            ),
            message=self.message or "",
            avro=avro,
            exact=self.times == "exact",
        )

    def _read_file(self, setting: str, advice: str) -> bytes:
        path = getattr(self, setting)
        try:
            return b"" if path is None else Path(path).read_bytes()
        except OSError as error:
            raise ConfigurationError(f"converter.registry.{setting} {path}: {error.strerror}: {advice}") from None


class Converter(ConfigModel):
    """How bytes become a key and a value (Kafka Connect's word).

    `connect_json` is Connect's JSON with `schemas.enable=true`: `{"schema": …, "payload": …}`; a value without that
    envelope is read as plain JSON. `avro`, `json_schema` and `protobuf` are Confluent's converters with a Schema
    Registry: the id of the schema is before the value (docs/schemas.md). `short`, `integer`, `long`, `float`,
    `double` and `boolean` are Kafka's own encodings (docs/schemas.md).

    Attributes:
        key: the encoding of keys.
        value: the encoding of values.
        registry: the registry of the schemas, for avro, json_schema and protobuf.
        times: the times of all converters whose records bring a schema. With `connect`, times that Kafka Connect knows
            are times,
            to the millisecond, and others are numbers; with `exact`, micro- and nanoseconds and Debezium's are times
            too.
        null_to_default: the sides, `key` and `value`, in which a null becomes the default of its schema, as Kafka
            Connect's converters have it. By itself a null stays null, and only what is missing gets the default.
    """

    key: ConverterType = "string"
    value: ConverterType = "json"
    registry: Registry | None = None
    times: Literal["connect", "exact"] = "connect"
    null_to_default: tuple[Literal["key", "value"], ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _share_times(cls, data: Any) -> Any:
        """Take `times` from the registry, where it was for Avro alone, or give it to the registry."""
        registry = data.get("registry") if isinstance(data, dict) else None
        if not isinstance(registry, dict):
            return data
        own, former = data.get("times"), registry.get("times")
        if own is not None and former is not None and own != former:
            raise RuleError(f"is {own!r}, and converter.registry.times {former!r}: give converter.times alone", "times")
        times = own if former is None else former
        return data if times is None else {**data, "times": times, "registry": {**registry, "times": times}}

    @model_validator(mode="after")
    def _check_registry(self) -> "Converter":
        for part, converter in (("key", self.key), ("value", self.value)):
            if CONVERTERS[converter].asks_registry and self.registry is None:
                raise RuleError(
                    f"converter.{part} {converter} needs its schemas: give converter.registry.url", "registry"
                )
        if self.registry is not None and self.registry.schema_file is not None and self.value != "avro":
            raise RuleError("is of values in Avro: write converter.value: avro, or give url", "registry", "schema_file")
        for part, converter in (("key", self.key), ("value", self.value)):
            if part in self.null_to_default and not CONVERTERS[converter].has_defaults:
                names = list_in_words(lambda one: one.has_defaults)
                raise RuleError(f"names {part}, and {converter} has no defaults: {names} have them", "null_to_default")
        return self
