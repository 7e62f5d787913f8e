"""One `kafka.properties` for librdkafka and for Spark's Java client."""

import pytest

from s3lake.errors import ConfigurationError
from s3lake.kafka.properties import client_properties, spark_options

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECRET = "hunter2-hunter2"


def options(**given: str) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in given.items()}


class TestPassingThrough:
    def test_a_name_of_both_goes_to_both(self) -> None:
        given = {"security.protocol": "SASL_SSL", "fetch.max.bytes": "1", "client.id": "me", "client.rack": "a"}
        assert client_properties(given) == given
        assert spark_options(given) == options(**given)

    def test_nothing_is_nothing(self) -> None:
        assert client_properties({}) == {}
        assert spark_options({}) == {}

    def test_a_prefix_keeps_a_name_from_the_other_side(self) -> None:
        given = {"client.debug": "security", "spark.ssl.protocol": "TLSv1.3"}
        assert client_properties(given) == {"debug": "security"}
        assert spark_options(given) == {"kafka.ssl.protocol": "TLSv1.3"}

    def test_a_side_of_its_own_wins(self) -> None:
        given = {"fetch.max.bytes": "1", "client.fetch.max.bytes": "2", "spark.fetch.max.bytes": "3"}
        assert client_properties(given) == {"fetch.max.bytes": "2"}
        assert spark_options(given) == {"kafka.fetch.max.bytes": "3"}


class TestPasswords:
    @pytest.mark.parametrize(
        ("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)]
    )
    def test_user_and_password_become_a_login_for_java(self, mechanism: str, module: str) -> None:
        given = {"sasl.mechanism": mechanism, "sasl.username": "me", "sasl.password": SECRET}
        login = f'{module} required username="me" password="{SECRET}";'
        assert client_properties(given) == given
        assert spark_options(given) == options(**{"sasl.mechanism": mechanism, "sasl.jaas.config": login})

    def test_a_login_becomes_user_and_password_for_librdkafka(self) -> None:
        given = {
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN}  required\n  password="{SECRET}"\n  username=me ;',
        }
        assert spark_options(given) == options(**given)
        assert client_properties(given) == {
            "sasl.mechanism": "PLAIN",
            "sasl.username": "me",
            "sasl.password": SECRET,
        }

    @pytest.mark.parametrize("password", ['a"b', "a\\b", 'a\\"b;c', "a;b", "a b=c", "ä'", 'x" serviceName="y'])
    def test_any_password_survives_there_and_back(self, password: str) -> None:
        given = {"sasl.mechanism": "PLAIN", "sasl.username": "me", "sasl.password": password}
        java = {name.removeprefix("kafka."): value for name, value in spark_options(given).items()}
        assert client_properties(java) == given

    def test_librdkafkas_spelling_of_the_mechanism_is_understood(self) -> None:
        given = {"sasl.mechanisms": "PLAIN", "sasl.username": "me", "sasl.password": SECRET}
        assert spark_options(given)["kafka.sasl.mechanism"] == "PLAIN"
        assert "kafka.sasl.mechanisms" not in spark_options(given)

    def test_with_both_given_each_side_takes_its_own(self) -> None:
        given = {"sasl.jaas.config": "com.acme.Login required;", "sasl.username": "me", "sasl.password": SECRET}
        assert client_properties(given) == {"sasl.username": "me", "sasl.password": SECRET}
        assert spark_options(given) == {"kafka.sasl.jaas.config": "com.acme.Login required;"}


class TestCertificates:
    def test_authorities_in_a_file(self) -> None:
        java = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"}
        assert spark_options({"ssl.ca.location": "/ca.pem"}) == options(**java)
        assert client_properties(java) == {"ssl.ca.location": "/ca.pem"}

    def test_authorities_in_the_configuration(self) -> None:
        java = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "-----BEGIN"}
        assert spark_options({"ssl.ca.pem": "-----BEGIN"}) == options(**java)
        assert client_properties(java) == {"ssl.ca.pem": "-----BEGIN"}

    def test_a_certificate_and_its_key_in_the_configuration(self) -> None:
        librdkafka = {"ssl.certificate.pem": "chain", "ssl.key.pem": "key", "ssl.key.password": SECRET}
        java = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": "chain",
            "ssl.keystore.key": "key",
            "ssl.key.password": SECRET,
        }
        assert spark_options(librdkafka) == options(**java)
        assert client_properties(java) == librdkafka

    def test_a_certificate_and_its_key_in_one_file(self) -> None:
        librdkafka = {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem"}
        java = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/me.pem"}
        assert spark_options(librdkafka) == options(**java)
        assert client_properties(java) == librdkafka

    @pytest.mark.parametrize("kind", [{}, {"ssl.keystore.type": "PKCS12"}])
    def test_both_read_pkcs12(self, kind: dict[str, str]) -> None:
        given = {"ssl.keystore.location": "/me.p12", "ssl.keystore.password": SECRET}
        assert client_properties({**given, **kind}) == given
        assert spark_options({**given, **kind}) == options(**given, **kind)

    def test_switching_the_check_of_host_names_off_is_spelt_in_two_ways(self) -> None:
        name = "ssl.endpoint.identification.algorithm"
        for off in ("", "none"):
            assert client_properties({name: off}) == {name: "none"}
            assert spark_options({name: off}) == options(**{name: ""})
        assert client_properties({name: "https"}) == {name: "https"}
        assert spark_options({name: "https"}) == options(**{name: "https"})


REFUSED_FOR_SPARK = [
    {"sasl.username": "me", "sasl.password": SECRET},
    {"sasl.mechanism": "GSSAPI", "sasl.username": "me", "sasl.password": SECRET},
    {"sasl.mechanism": "PLAIN", "sasl.password": SECRET},
    {"sasl.mechanism": "PLAIN", "client.sasl.username": "me", "sasl.password": SECRET},
    {"sasl.kerberos.keytab": "/me.keytab"},
    {"sasl.oauthbearer.client.secret": SECRET},
    {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.key"},
    {"ssl.key.pem": SECRET},
    {"enable.ssl.certificate.verification": "false"},
]
REFUSED_FOR_LIBRDKAFKA = [
    {"sasl.jaas.config": f'com.acme.Login required password="{SECRET}";'},
    {"sasl.jaas.config": f'{SCRAM} required username="me" password="{SECRET}" tokenauth="true";'},
    {"sasl.jaas.config": f'{PLAIN} required username="me";'},
    {"ssl.truststore.location": "/ca.jks", "ssl.truststore.password": SECRET},
    {"ssl.keystore.location": "/me.jks", "ssl.keystore.type": "JKS"},
    {"ssl.keystore.key": SECRET},
]


class TestRefusals:
    @pytest.mark.parametrize("given", REFUSED_FOR_SPARK, ids=str)
    def test_what_java_cannot_be_told_is_refused(self, given: dict[str, str]) -> None:
        with pytest.raises(
            ConfigurationError, match=r"cannot be translated for the Java client.*spark\..*client\."
        ) as e:
            spark_options(given)
        assert SECRET not in str(e.value)
        assert client_properties(given)

    @pytest.mark.parametrize("given", REFUSED_FOR_LIBRDKAFKA, ids=str)
    def test_what_librdkafka_cannot_be_told_is_refused(self, given: dict[str, str]) -> None:
        with pytest.raises(ConfigurationError, match=r"cannot be translated for librdkafka.*client\..*spark\.") as e:
            client_properties(given)
        assert SECRET not in str(e.value)
        assert spark_options(given) == options(**given)

    @pytest.mark.parametrize("given", [*REFUSED_FOR_SPARK, *REFUSED_FOR_LIBRDKAFKA], ids=str)
    def test_the_way_out_of_the_message_is_one(self, given: dict[str, str]) -> None:
        for side in ("client", "spark"):
            for_one = {f"{side}.{name.removeprefix('client.')}": value for name, value in given.items()}
            assert bool(client_properties(for_one)) == (side == "client")
            assert bool(spark_options(for_one)) == (side == "spark")

    def test_a_side_with_its_own_words_needs_no_translation(self) -> None:
        given = {
            "ssl.truststore.location": "/ca.jks",
            "ssl.truststore.password": SECRET,
            "client.ssl.ca.location": "/ca.pem",
            "sasl.username": "me",
            "spark.sasl.jaas.config": "com.acme.Login required;",
        }
        assert client_properties(given) == {"ssl.ca.location": "/ca.pem", "sasl.username": "me"}
        assert spark_options(given) == options(
            **{
                "ssl.truststore.location": "/ca.jks",
                "ssl.truststore.password": SECRET,
                "sasl.jaas.config": "com.acme.Login required;",
            }
        )
