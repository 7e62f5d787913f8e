"""`kafka.properties` for two clients: librdkafka, which plans, and the Java client inside Spark, which reads.

Most names are one in both and pass through. The few about security that differ are translated where that can be done
without guessing, and refused with a remedy where it cannot. `client.<name>` and `spark.<name>` are for one side only,
and win over everything else.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from s3lake.errors import ConfigurationError

# Real names in both clients, although they begin like the prefix for one side.
_SHARED_AFTER_ALL = {"client.id", "client.rack", "client.dns.lookup"}
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_MODULES = {"PLAIN": _PLAIN, "SCRAM-SHA-256": _SCRAM, "SCRAM-SHA-512": _SCRAM}
_OPTION = r"""\s+(\w+)\s*=\s*(?:"((?:[^"\\]|\\["\\])*)"|([^\s"\\;]+))"""
_LOGIN = re.compile(rf"\s*(?:{re.escape(_PLAIN)}|{re.escape(_SCRAM)})\s+required((?:{_OPTION})*)\s*;\s*")


def client_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties for librdkafka.

    Raises:
        ConfigurationError: a property has a meaning for Java only, and librdkafka is told nothing instead.
    """
    return _for_side(properties, "client", "spark", _TO_CLIENT)


def spark_options(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as options of Spark's Kafka source, each with its prefix `kafka.`.

    Raises:
        ConfigurationError: a property has a meaning for librdkafka only, and Java is told nothing instead.
    """
    return {f"kafka.{name}": value for name, value in _for_side(properties, "spark", "client", _TO_SPARK).items()}


@dataclass(frozen=True)
class _Foreign:
    """Names that mean something to the other client, or something else, and what this one is told in their place.

    Attributes:
        names: never passed on as they are.
        instead: what this client calls it; where one of these is given, nothing has to be translated.
        translate: the properties in their place; None where that would be a guess.
    """

    names: tuple[str, ...]
    instead: tuple[str, ...]
    translate: Callable[[Mapping[str, str]], dict[str, str] | None]


def _for_side(properties: Mapping[str, str], side: str, other: str, foreign: Iterable[_Foreign]) -> dict[str, str]:
    own: dict[str, str] = {}
    shared: dict[str, str] = {}
    for name, value in properties.items():
        prefix, _, rest = name.partition(".")
        if name in _SHARED_AFTER_ALL or prefix not in (side, other) or not rest:
            shared[name] = value
        elif prefix == side:
            own[rest] = value
    known = {**shared, **own}
    passed = {name: value for name, value in shared.items() if not any(name in rule.names for rule in foreign)}
    for rule in foreign:
        given = [name for name in rule.names if name in shared]
        if not given or any(name in known for name in rule.instead) or any(name in own for name in rule.names):
            continue
        translated = rule.translate(known)
        if translated is None:
            raise ConfigurationError(_refusal(given, rule.instead, side, other))
        passed |= translated
    return {**passed, **own}


def _refusal(given: list[str], instead: tuple[str, ...], side: str, other: str) -> str:
    who = {"client": "librdkafka, which plans", "spark": "the Java client, with which Spark reads"}[side]
    apart = f"write {' and '.join(f'{other}.{name}' for name in given)} if {side} needs nothing in its place"
    found = f"give {side} its own: {' or '.join(f'{side}.{name}' for name in instead)}; or " if instead else ""
    return f"kafka.properties: {' and '.join(given)} cannot be translated for {who}. To go on: {found}{apart}."


def _impossible(_: Mapping[str, str]) -> None:
    return None


def _jaas(known: Mapping[str, str]) -> dict[str, str] | None:
    mechanism = known.get("sasl.mechanism", known.get("sasl.mechanisms", "")).strip().upper()
    if mechanism not in _MODULES or "sasl.username" not in known or "sasl.password" not in known:
        return None
    username, password = (
        known[name].replace("\\", "\\\\").replace('"', '\\"') for name in ("sasl.username", "sasl.password")
    )
    return {"sasl.jaas.config": f'{_MODULES[mechanism]} required username="{username}" password="{password}";'}


def _login(known: Mapping[str, str]) -> dict[str, str] | None:
    found = _LOGIN.fullmatch(known["sasl.jaas.config"])
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted) or plain
        for name, quoted, plain in (re.findall(_OPTION, found[1]) if found else ())
    }
    if set(options) != {"username", "password"}:
        return None  # another module, or an option such as tokenauth that changes what the password is
    return {f"sasl.{name}": value for name, value in options.items()}


def _truststore(known: Mapping[str, str]) -> dict[str, str]:
    if "ssl.ca.pem" in known:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": known["ssl.ca.pem"]}
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": known["ssl.ca.location"]}


def _authorities(known: Mapping[str, str]) -> dict[str, str] | None:
    if known.get("ssl.truststore.type", "").upper() != "PEM":
        return None  # librdkafka reads neither JKS nor, for authorities, PKCS#12
    if "ssl.truststore.certificates" in known:
        return {"ssl.ca.pem": known["ssl.truststore.certificates"]}
    return {"ssl.ca.location": known["ssl.truststore.location"]} if "ssl.truststore.location" in known else None


def _keystore(known: Mapping[str, str]) -> dict[str, str] | None:
    if "ssl.certificate.pem" in known and "ssl.key.pem" in known:
        chain, key = known["ssl.certificate.pem"], known["ssl.key.pem"]
        return {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    location = known.get("ssl.certificate.location")
    if location is not None and location == known.get("ssl.key.location"):
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": location}
    return None  # Java wants the certificate and its key in one file


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

_TO_SPARK = (
    _Foreign(("sasl.mechanisms",), ("sasl.mechanism",), lambda known: {"sasl.mechanism": known["sasl.mechanisms"]}),
    _Foreign(("sasl.username", "sasl.password"), ("sasl.jaas.config",), _jaas),
    _Foreign(("sasl.kerberos.principal", "sasl.kerberos.keytab"), ("sasl.jaas.config",), _impossible),
    _Foreign(
        ("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config"),
        ("sasl.jaas.config",),
        _impossible,
    ),
    _Foreign(
        ("ssl.ca.location", "ssl.ca.pem"), ("ssl.truststore.location", "ssl.truststore.certificates"), _truststore
    ),
    _Foreign(
        ("ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem"),
        ("ssl.keystore.location", "ssl.keystore.key"),
        _keystore,
    ),
    _Foreign(("enable.ssl.certificate.verification",), ("ssl.engine.factory.class",), _impossible),
    _Foreign((_HOST_CHECK,), (), lambda known: {_HOST_CHECK: known[_HOST_CHECK].replace("none", "")}),
)
_TO_CLIENT = (
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
