"""`kafka.properties` for librdkafka, in its own names and in the names of Java's client."""

import pytest

from s3lake.errors import ConfigurationError
from s3lake.source.kafka.properties import to_librdkafka

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECRET = "hunter2-hunter2"


class TestPassingThrough:
    def test_names_that_both_clients_have_stay_as_they_are(self) -> None:
        given = {"security.protocol": "SASL_SSL", "fetch.max.bytes": "1", "client.id": "me", "client.rack": "a"}
        assert to_librdkafka(given) == given

    def test_nothing_is_nothing(self) -> None:
        assert to_librdkafka({}) == {}

    def test_librdkafkas_own_words_stay_as_they_are(self) -> None:
        given = {
            "sasl.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.client.secret": SECRET,
            "ssl.ca.pem": "-----BEGIN",
            "enable.ssl.certificate.verification": "false",
        }
        assert to_librdkafka(given) == given


class TestPasswords:
    @pytest.mark.parametrize(
        ("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)]
    )
    def test_javas_login_becomes_user_and_password(self, mechanism: str, module: str) -> None:
        login = f'{module}  required\n  password="{SECRET}"\n  username=me ;'
        given = {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
        expected = {"sasl.mechanism": mechanism, "sasl.username": "me", "sasl.password": SECRET}
        assert to_librdkafka(given) == expected

    @pytest.mark.parametrize("password", ['a"b', "a\\b", 'a\\"b;c', "a;b", "a b=c", "ä'", 'x" serviceName="y'])
    def test_any_quoted_password_is_understood(self, password: str) -> None:
        quoted = password.replace("\\", "\\\\").replace('"', '\\"')
        login = f'{PLAIN} required username="me" password="{quoted}";'
        assert to_librdkafka({"sasl.jaas.config": login}) == {"sasl.username": "me", "sasl.password": password}

    def test_librdkafkas_own_words_win(self) -> None:
        given = {"sasl.jaas.config": "com.acme.Login required;", "sasl.username": "me", "sasl.password": SECRET}
        assert to_librdkafka(given) == {"sasl.username": "me", "sasl.password": SECRET}


PEM_TRUST, PEM_KEYS = {"ssl.truststore.type": "PEM"}, {"ssl.keystore.type": "PEM"}
PKCS12 = {"ssl.keystore.location": "/me.p12", "ssl.keystore.password": SECRET}
HOST_NAMES = "ssl.endpoint.identification.algorithm"


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ({**PEM_TRUST, "ssl.truststore.location": "/ca.pem"}, {"ssl.ca.location": "/ca.pem"}),
        ({**PEM_TRUST, "ssl.truststore.certificates": "-----BEGIN"}, {"ssl.ca.pem": "-----BEGIN"}),
        (
            {
                **PEM_KEYS,
                "ssl.keystore.certificate.chain": "chain",
                "ssl.keystore.key": "key",
                "ssl.key.password": SECRET,
            },
            {"ssl.certificate.pem": "chain", "ssl.key.pem": "key", "ssl.key.password": SECRET},
        ),
        (
            {**PEM_KEYS, "ssl.keystore.location": "/me.pem"},
            {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem"},
        ),
        (PKCS12, PKCS12),
        ({**PKCS12, "ssl.keystore.type": "PKCS12"}, PKCS12),
        *(({HOST_NAMES: off}, {HOST_NAMES: "none"}) for off in ("", "none")),
        ({HOST_NAMES: "https"}, {HOST_NAMES: "https"}),
    ],
    ids=str,
)
def test_certificates_in_javas_names_are_translated(java: dict[str, str], librdkafka: dict[str, str]) -> None:
    assert to_librdkafka(java) == librdkafka


UNTRANSLATABLE = [
    {"sasl.jaas.config": f'com.acme.Login required password="{SECRET}";'},
    {"sasl.jaas.config": f'{SCRAM} required username="me" password="{SECRET}" tokenauth="true";'},
    {"sasl.jaas.config": f'{PLAIN} required username="me";'},
    {"ssl.truststore.location": "/ca.jks", "ssl.truststore.password": SECRET},
    {"ssl.keystore.location": "/me.jks", "ssl.keystore.type": "JKS"},
    {"ssl.keystore.key": SECRET},
]


@pytest.mark.parametrize("given", UNTRANSLATABLE, ids=str)
def test_untranslatable_properties_are_refused_with_the_names_of_librdkafka(given: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be translated for librdkafka.*in their place, \w+\.") as e:
        to_librdkafka(given)
    assert SECRET not in str(e.value)
    assert str(e.value).startswith(f"kafka.properties: {next(iter(given))}")
