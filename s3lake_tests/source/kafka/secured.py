"""A broker behind locks of every sort: a listener for each, one topic, and a provider of identities that it trusts."""

import base64
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import trustme
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from s3lake.demo.embedded_kafka import EmbeddedKafka
from s3lake.demo.process import free_ports
from s3lake_tests.kit.http import Request, Response, as_json, serve
from s3lake_tests.kit.lake import START, at, fill, values

PASSWORD = 'hunter2 ";\\ '
QUOTED = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
MODULES = "org.apache.kafka.common.security"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CLIENT, SECRET = "s3lake", "hunter2-of-the-client"
"""Who the provider of identities knows."""
TO_LAND = "secured-orders"
"""A topic of ten records of one hour."""
_PROTOCOLS = {
    "SASL": "SASL_PLAINTEXT",
    "SASLTLS": "SASL_SSL",
    "OIDC": "SASL_SSL",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "EXPIRED": "SSL",
}


@dataclass(frozen=True)
class Secured:
    """A broker with a listener of each kind, its topics, and the files of a client."""

    broker: EmbeddedKafka
    ports: Mapping[str, int]
    files: Path
    issuer: "Issuer"

    def server(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    @property
    def authority(self) -> dict[str, str]:
        return {"ssl.ca.location": str(self.files / "ca.pem")}

    @property
    def token(self) -> dict[str, str]:
        """Properties with which librdkafka asks the provider for a token."""
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": f"{self.issuer.url}/token",
            "sasl.oauthbearer.client.id": CLIENT,
            "sasl.oauthbearer.client.secret": SECRET,
            "sasl.oauthbearer.scope": "kafka",
        }


def login(mechanism: str) -> dict[str, str]:
    return {"sasl.mechanism": mechanism, "sasl.username": "me", "sasl.password": PASSWORD}


class Issuer:
    """A provider of identities (OIDC): tokens for a client's secret, by HTTP, and the key that they are signed with."""

    def __init__(self) -> None:
        self._key = rsa.generate_private_key(65537, 2048)
        self.asked = 0
        self.url = ""

    @contextmanager
    def serving(self) -> Iterator["Issuer"]:
        with serve(self._answer) as self.url:
            yield self

    def _answer(self, request: Request) -> Response:
        if request.method == "GET":
            return as_json({"keys": [self.public_key]})
        self.asked += 1
        form = parse_qs(request.body.decode())
        name, _, secret = base64.b64decode(request.headers["authorization"].split()[-1]).decode().partition(":")
        if (name, secret) == (CLIENT, SECRET) and form["grant_type"] == ["client_credentials"]:
            return as_json({"access_token": self.signed(), "token_type": "Bearer", "expires_in": 300})
        return as_json({"error": "invalid_client", "error_description": f"{name}:{secret}"}, 401)

    @property
    def public_key(self) -> dict[str, str]:
        numbers = self._key.public_key().public_numbers()
        modulus, exponent = (_url64(one.to_bytes((one.bit_length() + 7) // 8, "big")) for one in (numbers.n, numbers.e))
        return {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "first", "n": modulus, "e": exponent}

    def signed(self) -> str:
        now = int(time.time())
        claims = {"sub": CLIENT, "iss": self.url, "aud": "kafka", "iat": now, "exp": now + 300, "scope": "kafka"}
        header = {"alg": "RS256", "typ": "JWT", "kid": "first"}
        text = ".".join(_url64(json.dumps(one).encode()) for one in (header, claims))
        return f"{text}.{_url64(self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@contextmanager
def started(files: Path) -> Iterator[Secured]:
    """The broker with its topics; certificates go into `files`."""
    ports = dict(zip(_PROTOCOLS, free_ports(len(_PROTOCOLS)), strict=True))
    _write_certificates(files)
    with Issuer().serving() as issuer, pytest.MonkeyPatch.context() as environment:
        # Kafka asks only the servers for keys that a property of its JVM allows.
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={issuer.url}/keys"
        environment.setenv("JDK_JAVA_OPTIONS", allowed)
        with EmbeddedKafka.start(settings=_settings(ports, files, issuer)) as broker:
            plain = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
            admin = AdminClient(plain)
            for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
                wanted = UserScramCredentialUpsertion("me", ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
                admin.alter_user_scram_credentials([wanted])["me"].result()
            for made in admin.create_topics([NewTopic(name, 1, 1) for name in ("secured", TO_LAND)]).values():
                made.result()
            producer = Producer(plain)
            fill(producer, "secured", [b"behind locks"], int(time.time() * 1000), 0)
            fill(producer, TO_LAND, values(10), at(START, 5), 0)
            yield Secured(broker, ports, files, issuer)


def _write_certificates(files: Path) -> None:
    """Of an authority, the broker and a client: PEM with keys as PKCS#8, which Java wants."""
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(files / "ca.pem")
    stranger.cert_pem.write_to_path(files / "stranger.pem")
    yesterday = datetime.now(timezone.utc) - timedelta(days=1)
    week_before = yesterday - timedelta(days=7)
    for name, certificate in (
        ("broker", authority.issue_cert("127.0.0.1", "localhost")),
        ("expired", authority.issue_cert("127.0.0.1", not_before=week_before, not_after=yesterday)),
        ("client", authority.issue_cert("client")),
        ("late", authority.issue_cert("client", not_before=week_before, not_after=yesterday)),
    ):
        chain = b"".join(one.bytes() for one in certificate.cert_chain_pems)
        key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"hunter2"))
        (files / f"{name}.pem").write_bytes(plain + chain)
        (files / f"{name}.crt").write_bytes(chain)
        (files / f"{name}.key").write_bytes(plain)
        (files / f"{name}.locked.key").write_bytes(locked)


def _settings(ports: Mapping[str, int], files: Path, issuer: Issuer) -> dict[str, str]:
    module = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"
    logins = {
        "plain": f'{MODULES}.plain.PlainLoginModule required user_me="{QUOTED}";',
        "scram-sha-256": f"{MODULES}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{MODULES}.scram.ScramLoginModule required;",
        "oauthbearer": f"{module} unsecuredLoginStringClaim_sub=admin;",
    }
    found = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}"
            for name, protocol in {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **_PROTOCOLS}.items()
        ),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files / "ca.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.expired.ssl.keystore.type": "PEM",
        "listener.name.expired.ssl.keystore.location": str(files / "expired.pem"),
        "listener.name.oidc.sasl.enabled.mechanisms": "OAUTHBEARER",
    }
    for listener in ("sasl", "sasltls"):
        for mechanism, wanted in logins.items():
            escaped = wanted.replace("\\", "\\\\")  # the file's own escapes
            found[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = escaped
    provider = {
        "sasl.jaas.config": f"{module};",
        "sasl.server.callback.handler.class": f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": f"{issuer.url}/keys",
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": issuer.url,
    }
    return found | {f"listener.name.oidc.oauthbearer.{name}": value for name, value in provider.items()}


def _url64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
