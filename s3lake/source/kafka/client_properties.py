"""`kafka.properties` for librdkafka, which plans and reads, also where they are written in the Java client's words.

Most names are one in both and pass through. The few about security that differ, as a connector's `consumer.override.*`
has them, are translated where that can be done without guessing, and refused with a remedy where it cannot.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from s3lake.errors import ConfigurationError
from s3lake.text.masking import mask_secrets, mask_value

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OPTION = r"""\s+(\w+)\s*=\s*(?:"((?:[^"\\]|\\["\\])*)"|([^\s"\\;]+))"""
_LOGIN = re.compile(rf"\s*(?:{re.escape(_PLAIN)}|{re.escape(_SCRAM)})\s+required((?:{_OPTION})*)\s*;\s*")


REMEDY = (
    "Check that the brokers are up and can be reached from here, and that kafka.properties fit their listener: "
    "security.protocol, user and password, certificates that have not expired and who signed them"
)
"""Where no answer comes; librdkafka calls a certificate bad, and not whether it is too old or unknown."""

_log = logging.getLogger(__name__)


class _JavaProperty(NamedTuple):
    """Properties that only Java's client knows, never passed on as they are.

    Attributes:
        instead: librdkafka's names for the same; if one of these is given, nothing has to be translated.
        translate: returns librdkafka's properties, None if that would be a guess.
    """

    names: tuple[str, ...]
    instead: tuple[str, ...]
    translate: Callable[[Mapping[str, str]], dict[str, str] | None]


def to_librdkafka(properties: Mapping[str, str]) -> dict[str, str]:
    """Translate the properties for librdkafka.

    Raises:
        ConfigurationError: only Java's client knows a property, and none of librdkafka's is given instead.
    """
    java_names = {name for one in _JAVA for name in one.names}
    passed = {name: value for name, value in properties.items() if name not in java_names}
    for names, instead, translate in _JAVA:
        present = [name for name in names if name in properties]
        if not present or any(name in properties for name in instead):
            continue
        translated = translate(properties)
        if translated is None:
            raise ConfigurationError(
                f"kafka.properties: {' and '.join(present)} cannot be translated for librdkafka, which reads Kafka. To "
                f"go on: write what librdkafka knows in their place, {' or '.join(instead)}"
            )
        passed |= translated
    return passed


def hide_secrets(text: str, properties: Mapping[str, str]) -> str:
    """Mask the secrets of `properties` in a message: librdkafka, brokers and token providers may quote them."""
    return mask_secrets(text, [value for name, value in properties.items() if mask_value(name, value) != value])


class ErrorLog:
    """The last error of a client's connections, without secrets: "" or "; its text".

    librdkafka mends connections by itself, and would write several lines a second to stderr while brokers are down.

    Args:
        settings: the client's settings, by librdkafka's names.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.name = self.text = ""
        self._settings = settings

    def __str__(self) -> str:
        return self.text and f"; {self.text}"

    def record(self, name: str, text: str) -> None:
        """Keep an error by its name and librdkafka's text."""
        if name != "_ALL_BROKERS_DOWN":  # has nothing that the one before it did not have
            self.name, self.text = name, hide_secrets(text, self._settings)

    def record_error(self, error: KafkaError) -> None:
        """Keep the error that confluent-kafka calls an `error_cb` with."""
        self.record(error.name(), error.str())

    def log(self, _: int, message: str, *args: object) -> None:
        """Log what confluent-kafka calls a `logger` with."""
        _log.debug("%s", hide_secrets(message % args, self._settings))

    def clear(self) -> None:
        """Forget the error, because the client works again."""
        self.name = self.text = ""


def _translate_jaas(properties: Mapping[str, str]) -> dict[str, str] | None:
    login = _LOGIN.fullmatch(properties["sasl.jaas.config"])
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted) or plain
        for name, quoted, plain in (re.findall(_OPTION, login[1]) if login else ())
    }
    if set(options) != {"username", "password"}:
        return None  # another module, or an option such as tokenauth that changes what the password is
    return {f"sasl.{name}": value for name, value in options.items()}


def _translate_truststore(properties: Mapping[str, str]) -> dict[str, str] | None:
    if properties.get("ssl.truststore.type", "").upper() != "PEM":
        return None  # librdkafka reads neither JKS nor, for authorities, PKCS#12
    if "ssl.truststore.certificates" in properties:
        return {"ssl.ca.pem": properties["ssl.truststore.certificates"]}
    location = properties.get("ssl.truststore.location")
    return None if location is None else {"ssl.ca.location": location}


def _translate_keystore(properties: Mapping[str, str]) -> dict[str, str] | None:
    store_type = properties.get("ssl.keystore.type", "PKCS12").upper()
    location = properties.get("ssl.keystore.location")
    if store_type == "PEM" and location is not None:
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    if store_type == "PEM" and "ssl.keystore.certificate.chain" in properties and "ssl.keystore.key" in properties:
        return {
            "ssl.certificate.pem": properties["ssl.keystore.certificate.chain"],
            "ssl.key.pem": properties["ssl.keystore.key"],
        }
    # Without a type Java takes PKCS#12 for what it is, too.
    return {"ssl.keystore.location": location} if store_type == "PKCS12" and location is not None else None


_HOST_CHECK = "ssl.endpoint.identification.algorithm"  # off is "none" for librdkafka and empty for Java

_JAVA = (
    _JavaProperty(
        ("sasl.jaas.config",),
        ("sasl.username", "sasl.oauthbearer.client.id", "sasl.oauthbearer.config", "sasl.kerberos.keytab"),
        _translate_jaas,
    ),
    _JavaProperty(
        ("ssl.truststore.location", "ssl.truststore.certificates", "ssl.truststore.type", "ssl.truststore.password"),
        ("ssl.ca.location", "ssl.ca.pem"),
        _translate_truststore,
    ),
    _JavaProperty(
        ("ssl.keystore.location", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.type"),
        ("ssl.certificate.location", "ssl.certificate.pem"),
        _translate_keystore,
    ),
    _JavaProperty((_HOST_CHECK,), (), lambda properties: {_HOST_CHECK: properties[_HOST_CHECK] or "none"}),
)
