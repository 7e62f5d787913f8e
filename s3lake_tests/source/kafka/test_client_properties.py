"""`kafka.properties` for librdkafka, in its own names and in the names of Java's client."""

import pytest

from s3lake.errors import ConfigurationError
from s3lake.source.kafka.client_properties import to_librdkafka
from s3lake_tests.conftest import short_id
from s3lake_tests.kit.tables import read_yaml, rows

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECRET = "hunter2-hunter2"


SAME = [
    {},
    {"security.protocol": "SASL_SSL", "fetch.max.bytes": "1", "client.id": "me", "client.rack": "a"},
    {"sasl.mechanisms": "OAUTHBEARER", "sasl.oauthbearer.client.secret": SECRET, "ssl.ca.pem": "-----BEGIN"},
    {"enable.ssl.certificate.verification": "false"},
]


@pytest.mark.parametrize("given", SAME, ids=short_id)
def test_names_of_both_clients_and_librdkafkas_own_stay_as_they_are(given: dict[str, str]) -> None:
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


CERTIFICATES = """
ssl.truststore.type: PEM, ssl.truststore.location: /ca.pem => ssl.ca.location: /ca.pem
ssl.truststore.type: PEM, ssl.truststore.certificates: -----BEGIN => ssl.ca.pem: -----BEGIN
ssl.keystore.type: PEM, ssl.keystore.certificate.chain: chain, ssl.keystore.key: key, ssl.key.password: hush =>
    ssl.certificate.pem: chain, ssl.key.pem: key, ssl.key.password: hush
ssl.keystore.type: PEM, ssl.keystore.location: /me.pem => ssl.certificate.location: /me.pem, ssl.key.location: /me.pem
ssl.keystore.location: /me.p12, ssl.keystore.password: hush =>
    ssl.keystore.location: /me.p12, ssl.keystore.password: hush
ssl.keystore.type: PKCS12, ssl.keystore.location: /me.p12 => ssl.keystore.location: /me.p12
ssl.endpoint.identification.algorithm: "" => ssl.endpoint.identification.algorithm: none
ssl.endpoint.identification.algorithm: none => ssl.endpoint.identification.algorithm: none
ssl.endpoint.identification.algorithm: https => ssl.endpoint.identification.algorithm: https
"""


@pytest.mark.parametrize(("java", "librdkafka"), rows(CERTIFICATES))
def test_certificates_in_javas_names_are_translated(java: str, librdkafka: str) -> None:
    assert to_librdkafka(read_yaml(java)) == read_yaml(librdkafka)


UNTRANSLATABLE = [
    {"sasl.jaas.config": f'com.acme.Login required password="{SECRET}";'},
    {"sasl.jaas.config": f'{SCRAM} required username="me" password="{SECRET}" tokenauth="true";'},
    {"sasl.jaas.config": f'{PLAIN} required username="me";'},
    {"ssl.truststore.location": "/ca.jks", "ssl.truststore.password": SECRET},
    {"ssl.keystore.location": "/me.jks", "ssl.keystore.type": "JKS"},
    {"ssl.keystore.key": SECRET},
]


@pytest.mark.parametrize("given", UNTRANSLATABLE, ids=short_id)
def test_untranslatable_properties_are_refused_with_the_names_of_librdkafka(given: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be translated for librdkafka.*in their place, \w+\.") as e:
        to_librdkafka(given)
    assert SECRET not in str(e.value)
    assert str(e.value).startswith(f"kafka.properties: {next(iter(given))}")
