"""One configuration for planning and reading, whatever the listener asks for: passwords, tokens, certificates."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

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
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from s3lake.demo.kafka import EmbeddedKafka
from s3lake.demo.process import free_ports
from s3lake.errors import KafkaUnavailableError
from s3lake.source.kafka import reader
from s3lake.source.kafka.client import KafkaOffsets
from s3lake.source.kafka.reader import Brokers
from s3lake.source.records import Range

pytestmark = pytest.mark.kafka

PASSWORD = 'hunter2 ";\\ '
QUOTED = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
MODULES = "org.apache.kafka.common.security"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


@dataclass(frozen=True)
class Secured:
    """A broker with a listener of each kind, its topic of one record, and the files of a client."""

    ports: Mapping[str, int]
    files: Path

    def server(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    def read(self, listener: str, properties: Mapping[str, str]) -> list[bytes]:
        """The topic's values, planned and read by one configuration."""
        offsets = KafkaOffsets(self.server(listener), properties, timeout_s=20)
        (start, end) = offsets.ranges("secured")[0]
        brokers = Brokers(self.server(listener), properties)
        found = brokers.batches("secured", [Range(0, start, end)], ("value",))
        return [value for batch in found for value in batch["value"].to_pylist()]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    files = tmp_path_factory.mktemp("secured")
    names = ("SASL", "SASLTLS", "TLS", "MUTUAL")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    write_certificates(files)
    with EmbeddedKafka.start(settings=settings(ports, files)) as broker:
        plain = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
        admin = AdminClient(plain)
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            wanted = UserScramCredentialUpsertion("me", ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            admin.alter_user_scram_credentials([wanted])["me"].result()
        admin.create_topics([NewTopic("secured", 1, 1)])["secured"].result()
        producer = Producer(plain)
        producer.produce("secured", b"behind locks", partition=0)
        assert producer.flush(20) == 0
        yield Secured(ports, files)


def write_certificates(files: Path) -> None:
    """Of an authority, the broker and a client: PEM with keys as PKCS#8, which Java wants."""
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(files / "ca.pem")
    stranger.cert_pem.write_to_path(files / "stranger.pem")
    for name, certificate in (
        ("broker", authority.issue_cert("127.0.0.1", "localhost")),
        ("client", authority.issue_cert("client")),
    ):
        chain = b"".join(one.bytes() for one in certificate.cert_chain_pems)
        key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"hunter2"))
        (files / f"{name}.pem").write_bytes(plain + chain)
        (files / f"{name}.crt").write_bytes(chain)
        (files / f"{name}.key").write_bytes(plain)
        (files / f"{name}.locked.key").write_bytes(locked)


def settings(ports: Mapping[str, int], files: Path) -> dict[str, str]:
    protocols = {"SASL": "SASL_PLAINTEXT", "SASLTLS": "SASL_SSL", "TLS": "SSL", "MUTUAL": "SSL"}
    logins = {
        "plain": f'{MODULES}.plain.PlainLoginModule required user_me="{QUOTED}";',
        "scram-sha-256": f"{MODULES}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{MODULES}.scram.ScramLoginModule required;",
        "oauthbearer": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=admin;",
    }
    found = {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}"
            for name, protocol in {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **protocols}.items()
        ),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files / "ca.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
    }
    for listener in ("sasl", "sasltls"):
        for mechanism, login in logins.items():
            escaped = login.replace("\\", "\\\\")  # the file's own escapes
            found[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = escaped
    return found


def login(mechanism: str) -> dict[str, str]:
    return {"sasl.mechanism": mechanism, "sasl.username": "me", "sasl.password": PASSWORD}


class TestWhatIsRead:
    @pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
    def test_with_a_password(self, secured: Secured, mechanism: str) -> None:
        given = {"security.protocol": "SASL_PLAINTEXT", **login(mechanism)}
        assert secured.read("SASL", given) == [b"behind locks"]

    @pytest.mark.parametrize(("mechanism", "module"), [("PLAIN", "plain.Plain"), ("SCRAM-SHA-512", "scram.Scram")])
    def test_with_a_login_of_javas_client(self, secured: Secured, mechanism: str, module: str) -> None:
        jaas = f'{MODULES}.{module}LoginModule required username="me" password="{QUOTED}";'
        given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
        assert secured.read("SASL", given) == [b"behind locks"]

    def test_with_a_token(self, secured: Secured) -> None:
        given = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": "principal=me",
        }
        assert secured.read("SASL", given) == [b"behind locks"]

    def test_with_a_password_over_tls(self, secured: Secured) -> None:
        given = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(secured.files / "ca.pem"), **login("PLAIN")}
        assert secured.read("SASLTLS", given) == [b"behind locks"]

    def test_over_tls_with_an_authority_in_javas_words(self, secured: Secured) -> None:
        store = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(secured.files / "ca.pem")}
        assert secured.read("TLS", {"security.protocol": "SSL", **store}) == [b"behind locks"]

    def test_over_tls_with_an_authority_in_the_configuration(self, secured: Secured) -> None:
        given = {"security.protocol": "SSL", "ssl.ca.pem": (secured.files / "ca.pem").read_text()}
        assert secured.read("TLS", given) == [b"behind locks"]

    @pytest.mark.parametrize(
        "certificate",
        [
            lambda files: {
                "ssl.certificate.location": str(files / "client.crt"),
                "ssl.key.location": str(files / "client.key"),
            },
            lambda files: {
                "ssl.certificate.location": str(files / "client.crt"),
                "ssl.key.location": str(files / "client.locked.key"),
                "ssl.key.password": "hunter2",
            },
            lambda files: {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(files / "client.pem")},
            lambda files: {
                "ssl.certificate.pem": (files / "client.crt").read_text(),
                "ssl.key.pem": (files / "client.key").read_text(),
            },
        ],
        ids=["two files", "a locked key", "one file in Java's words", "in the configuration"],
    )
    def test_with_a_certificate_of_the_client(
        self, secured: Secured, certificate: Callable[[Path], dict[str, str]]
    ) -> None:
        given = {"security.protocol": "SSL", "ssl.ca.location": str(secured.files / "ca.pem")}
        assert secured.read("MUTUAL", {**given, **certificate(secured.files)}) == [b"behind locks"]


class TestWhatIsRefused:
    CASES = (
        ("SASL", {"security.protocol": "SASL_PLAINTEXT", **login("PLAIN"), "sasl.password": "wrong-hunter2"}),
        ("SASL", {"security.protocol": "SASL_PLAINTEXT", **login("SCRAM-SHA-256"), "sasl.password": "wrong-hunter2"}),
        ("TLS", {"security.protocol": "SSL"}),
        ("TLS", {"security.protocol": "PLAINTEXT"}),
        ("MUTUAL", {"security.protocol": "SSL", "enable.ssl.certificate.verification": "false"}),
    )

    @pytest.mark.parametrize(("listener", "given"), CASES)
    def test_planning_and_reading_say_so_and_no_secret(
        self, secured: Secured, listener: str, given: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reader, "SILENCE_S", 4.0)
        server = secured.server(listener)
        with pytest.raises(KafkaUnavailableError, match=rf"Kafka at {server} did not tell") as planning:
            KafkaOffsets(server, given, timeout_s=4.0).ranges("secured")
        with pytest.raises(KafkaUnavailableError, match=rf"Kafka at {server} did not give") as reading:
            list(Brokers(server, given).batches("secured", [Range(0, 0, 1)], ("value",)))
        assert "hunter2" not in f"{planning.value} {reading.value}"
        if given["security.protocol"] != "PLAINTEXT":  # an answer of TLS looks like silence to who does not speak it
            reason = "Authentication failure|invalid credentials|certificate|SSL|Authentication failed"
            assert re.search(reason, str(planning.value))
            assert re.search(reason, str(reading.value))
