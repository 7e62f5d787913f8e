"""Secrets are never printed, and the text around them stays readable."""

import pytest

from s3lake.text.masking import MASK, find_logins, is_masked, is_secret, mask_properties, mask_secrets


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("spark.jars.repositories", "https://u:PLANT@host/a,https://host/b", f"https://{MASK}@host/a,https://host/b"),
        ("https.proxy", "http://u:PLANT@proxy:3128", f"http://{MASK}@proxy:3128"),
        ("spark.hadoop.fs.s3a.proxy", "u:PLANT@proxy:3128", MASK),
        ("basic.auth", "u:PLANT", MASK),
        ("sasl.oauthbearer.config", "principal=PLANT", MASK),
        ("sasl.oauthbearer.extensions", "logicalCluster=PLANT", MASK),
        ("spark.driver.extraJavaOptions", "-Da.password=PLANT", MASK),
        ("sasl.oauthbearer.method", "oidc", "oidc"),
        ("http.proxy", "http://proxy:3128", "http://proxy:3128"),
        ("client.id", "a@b", "a@b"),
    ],
)
def test_a_secret_is_known_by_its_name_or_by_its_form(name: str, value: str, shown: str) -> None:
    assert mask_properties({name: value}) == {name: shown}
    assert is_masked(shown) is (shown != value)


SECRETS = """
    sasl.password sasl.jaas.config ssl.key.pem ssl.keystore.key basic.auth.user.info sasl.oauthbearer.client.secret
    spark.hadoop.fs.s3a.secret.key spark.hadoop.fs.s3a.access.key spark.ssl.keyStore.pass SSL_PASSPHRASE api_key
    secret_access_key adls.account-key adls.connection-string rest.signing-key
"""
PLAIN = """
    security.protocol sasl.username ssl.ca.location key key.deserializer client.id keys s3.access-key-id passenger
"""


@pytest.mark.parametrize(("names", "expected"), [(SECRETS, True), (PLAIN, False)])
def test_a_secret_is_known_by_its_name(names: str, expected: bool) -> None:
    assert [name for name in names.split() if is_secret(name) != expected] == []


def test_a_short_secret_is_masked_only_as_a_whole_word() -> None:
    message = "'list-type' is not allowed, nor is 'y'; did you mean list?"
    assert mask_secrets(message, ["y", "list"]) == (
        f"'{MASK}-type' is not allowed, nor is '{MASK}'; did you mean {MASK}?"
    )
    assert mask_secrets("pretty 'y'", ["y"]) == f"pretty '{MASK}'"
    assert mask_secrets("listing lists", ["list"]) == "listing lists"


def test_true_and_false_are_not_masked() -> None:
    assert mask_secrets("'true' is not allowed; expected true or false", ["true", "False"]) == (
        "'true' is not allowed; expected true or false"
    )


def test_a_long_secret_is_masked_inside_of_words() -> None:
    assert mask_secrets(r"xhunter22hunter22y 'hush\\now'", ["hunter22", "hush\\now"]) == f"x{MASK}{MASK}y '{MASK}'"


def test_the_user_of_an_address_is_masked_in_every_message() -> None:
    assert mask_secrets("no answer from https://u:p%40@host/x", []) == f"no answer from https://{MASK}@host/x"
    assert find_logins("a https://u:pw@h b http://t@i") == {"u:pw", "pw", "t"}


@pytest.mark.parametrize(
    "header", ["b'hush\\n'", "'hush\\nhush'", 'b"it\'s hush\\n"', "b'it\\'s hush\\n'", "b'hush, and cut"]
)
def test_an_invalid_header_is_masked_in_every_message(header: str) -> None:
    message = mask_secrets(f"HTTPClientError: Invalid header value {header}", [])
    assert message == f"HTTPClientError: Invalid header value {MASK}"
