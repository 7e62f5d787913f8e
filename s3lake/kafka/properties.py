"""`kafka.properties` for librdkafka, which plans and reads, also where they are written in the Java client's words.

Most names are one in both and pass through. The few about security that differ, as a connector's `consumer.override.*`
has them, are translated where that can be done without guessing, and refused with a remedy where it cannot.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from s3lake.errors import ConfigurationError

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OPTION = r"""\s+(\w+)\s*=\s*(?:"((?:[^"\\]|\\["\\])*)"|([^\s"\\;]+))"""
_LOGIN = re.compile(rf"\s*(?:{re.escape(_PLAIN)}|{re.escape(_SCRAM)})\s+required((?:{_OPTION})*)\s*;\s*")


@dataclass(frozen=True)
class _Foreign:
    """Names that only Java's client knows, and what librdkafka is told in their place.

    Attributes:
        names: never passed on as they are.
        instead: what librdkafka calls it; where one of these is given, nothing has to be translated.
        translate: the properties in their place; None where that would be a guess.
    """

    names: tuple[str, ...]
    instead: tuple[str, ...]
    translate: Callable[[Mapping[str, str]], dict[str, str] | None]


def client_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties for librdkafka.

    Raises:
        ConfigurationError: a property has a meaning for Java only, and librdkafka is told nothing instead.
    """
    passed = {name: value for name, value in properties.items() if not any(name in one.names for one in _FOREIGN)}
    for foreign in _FOREIGN:
        given = [name for name in foreign.names if name in properties]
        if not given or any(name in properties for name in foreign.instead):
            continue
        translated = foreign.translate(properties)
        if translated is None:
            raise ConfigurationError(_refusal(given, foreign.instead))
        passed |= translated
    return passed


def _refusal(given: list[str], instead: tuple[str, ...]) -> str:
    return (
        f"kafka.properties: {' and '.join(given)} cannot be translated for librdkafka, which reads Kafka. To go on: "
        f"write what librdkafka knows in their place, {' or '.join(instead)}"
    )


def _login(known: Mapping[str, str]) -> dict[str, str] | None:
    found = _LOGIN.fullmatch(known["sasl.jaas.config"])
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted) or plain
        for name, quoted, plain in (re.findall(_OPTION, found[1]) if found else ())
    }
    if set(options) != {"username", "password"}:
        return None  # another module, or an option such as tokenauth that changes what the password is
    return {f"sasl.{name}": value for name, value in options.items()}


def _authorities(known: Mapping[str, str]) -> dict[str, str] | None:
    if known.get("ssl.truststore.type", "").upper() != "PEM":
        return None  # librdkafka reads neither JKS nor, for authorities, PKCS#12
    if "ssl.truststore.certificates" in known:
        return {"ssl.ca.pem": known["ssl.truststore.certificates"]}
    return {"ssl.ca.location": known["ssl.truststore.location"]} if "ssl.truststore.location" in known else None


def _certificate(known: Mapping[str, str]) -> dict[str, str] | None:
    kind, location = known.get("ssl.keystore.type", "PKCS12").upper(), known.get("ssl.keystore.location")
    if kind == "PEM" and location is not None:
        return {"ssl.certificate.location": location, "ssl.key.location": location}
    if kind == "PEM" and "ssl.keystore.certificate.chain" in known and "ssl.keystore.key" in known:
        return {
            "ssl.certificate.pem": known["ssl.keystore.certificate.chain"],
            "ssl.key.pem": known["ssl.keystore.key"],
        }
    # Without a type Java takes PKCS#12 for what it is, too.
    return {"ssl.keystore.location": location} if kind == "PKCS12" and location is not None else None


_HOST_CHECK = "ssl.endpoint.identification.algorithm"  # off is "none" for librdkafka and empty for Java

_FOREIGN = (
    _Foreign(
        ("sasl.jaas.config",),
        ("sasl.username", "sasl.oauthbearer.client.id", "sasl.oauthbearer.config", "sasl.kerberos.keytab"),
        _login,
    ),
    _Foreign(
        ("ssl.truststore.location", "ssl.truststore.certificates", "ssl.truststore.type", "ssl.truststore.password"),
        ("ssl.ca.location", "ssl.ca.pem"),
        _authorities,
    ),
    _Foreign(
        ("ssl.keystore.location", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.type"),
        ("ssl.certificate.location", "ssl.certificate.pem"),
        _certificate,
    ),
    _Foreign((_HOST_CHECK,), (), lambda known: {_HOST_CHECK: known[_HOST_CHECK] or "none"}),
)
