"""Whatever a connector's file says of credentials, roles, proxies and encryption is used or refused, and never lost."""

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.errors import ConfigurationError
from s3lake.store.connection import S3Connection
from s3lake_tests.config import bases
from s3lake_tests.config.bases import loads

CLASS = "s3.credentials.provider.class"
OPTION = "s3.credentials.provider."


def given(changes: dict[str, str | None], base: dict[str, str] = bases.CONFLUENT) -> S3Connection:
    return S3Connection.from_settings(loaded(changes, base).config.s3)


def loaded(changes: dict[str, str | None], base: dict[str, str] = bases.CONFLUENT) -> LoadedConfig:
    return loads(bases.properties(base, changes), "f", None, {})


ARN = "arn:aws:iam::1:role/lake"
KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
KMS = {"s3.ssea.name": "aws:kms", "s3.sse.kms.key.id": "key-1"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        *(
            ({CLASS: cls, f"{OPTION}{access}": "AK", f"{OPTION}{secret}": "SK"}, {"access_key_id": "AK"})
            for cls in (None, "com.acme.StaticProvider")
            for access, secret in (
                ("access_key_id", "secret_access_key"),
                ("aws.access.key.id", "aws.secret.access.key"),
                ("access.key", "secret.key"),
            )
        ),
        (
            {
                CLASS: "io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider",
                f"{OPTION}sts.role.arn": ARN,
                f"{OPTION}sts.role.external.id": "ours",
                f"{OPTION}sts.role.session.name": "connect",
            },
            {"role_arn": ARN, "role_external_id": "ours", "role_session_name": "connect"},
        ),
        (
            {CLASS: "a.WebIdentity", f"{OPTION}role.arn": ARN, f"{OPTION}web.identity.token.file": "/run/token"},
            {"role_arn": ARN, "role_token_file": "/run/token"},
        ),
        (
            {CLASS: "com.amazonaws.auth.profile.ProfileCredentialsProvider", f"{OPTION}profile.name": "lake"},
            {"profile": "lake", "source": "profile"},
        ),
        (
            {**KMS, "s3.acl.canned": "private"},
            {"created_with": (("ServerSideEncryption", "aws:kms"), ("SSEKMSKeyId", "key-1"), ("ACL", "private"))},
        ),
        (
            {**KMS, "s3.ssea.name": "aws:kms:dsse"},
            {"created_with": (("ServerSideEncryption", "aws:kms:dsse"), ("SSEKMSKeyId", "key-1"))},
        ),
        *(
            ({"s3.acl.canned": name}, {"created_with": (("ACL", "bucket-owner-full-control"),)})
            for name in ("bucket-owner-full-control", "BucketOwnerFullControl")
        ),
        (
            {"s3.ssea.name": "AES256", "s3.sse.customer.key": KEY},
            {"customer_key": KEY, "created_with": ()},
        ),
        (
            {"s3.proxy.url": "http://proxy:3128", "s3.proxy.user": "me", "s3.proxy.password": "hush-hush"},
            {"proxy": "http://me:hush-hush@proxy:3128"},
        ),
        ({"s3.wan.mode": "true"}, {"accelerate": True, "path_style": False}),
    ],
)
def test_keys_of_confluent_are_how_s3_is_reached(changes: dict[str, str | None], expected: dict[str, object]) -> None:
    connection = given(changes)
    assert {name: getattr(connection, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {
                "aws.sts.role.arn": ARN,
                "aws.sts.role.external.id": "ours",
                "aws.sts.role.session.duration": "900",
                "aws.sts.config.endpoint": "https://sts.eu-west-1.amazonaws.com",
            },
            {
                "role_arn": ARN,
                "role_external_id": "ours",
                "role_duration_s": 900,
                "role_endpoint_url": "https://sts.eu-west-1.amazonaws.com",
            },
        ),
        ({"aws.s3.sse.algorithm": "AES256"}, {"created_with": (("ServerSideEncryption", "AES256"),)}),
    ],
)
def test_keys_of_aiven_are_how_s3_is_reached(changes: dict[str, str | None], expected: dict[str, object]) -> None:
    connection = given(changes, bases.AIVEN)
    assert {name: getattr(connection, name) for name in expected} == expected


def test_half_a_key_pair_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"s3\.credentials\.secret_access_key: is missing"):
        given({f"{OPTION}access_key_id": "AK"})


@pytest.mark.parametrize(("behaviour", "wanted"), [(None, "tried"), ("ignore", "tried"), ("fail", "required")])
def test_tags_are_given_and_those_of_the_records_an_object_holds(behaviour: str | None, wanted: str) -> None:
    pairs = {"s3.object.tagging.key.value.pairs": "team:data,cost:a:b"}
    configuration = loaded({"s3.object.tagging": "true", **pairs, "s3.object.behavior.on.tagging.error": behaviour})
    assert configuration.config.s3.objects.tags == {"team": "data", "cost": "a:b"}
    assert configuration.config.s3.objects.offset_tags == wanted
    assert "tagging" not in bases.remarks_text(configuration)
    assert configuration.origins["s3", "objects", "tags", "team"].key == "s3.object.tagging.key.value.pairs"


def test_tags_that_the_connector_would_not_set_are_noted() -> None:
    idle = {"s3.object.tagging.key.value.pairs": "team:data", "s3.object.behavior.on.tagging.error": "fail"}
    configuration = loaded(idle)
    assert (configuration.config.s3.objects.tags, configuration.config.s3.objects.offset_tags) == ({}, None)
    unused = "changes nothing next to the other settings of this file"
    assert [notice.place.key for notice in bases.remarks(configuration) if unused in notice.message] == [*idle]


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("com.amazonaws.auth.EnvironmentVariableCredentialsProvider", "environment"),
        ("com.amazonaws.auth.InstanceProfileCredentialsProvider", "instance"),
        ("com.amazonaws.auth.profile.ProfileCredentialsProvider", "profile"),
        ("software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider", "web_identity"),
        ("software.amazon.awssdk.auth.credentials.ContainerCredentialsProvider", "container"),
        ("software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider", "anonymous"),
        ("com.amazonaws.auth.DefaultAWSCredentialsProviderChain", "default"),
    ],
)
@pytest.mark.parametrize(("base", "key"), [(bases.CONFLUENT, CLASS), (bases.AIVEN, "aws.credentials.provider")])
def test_a_class_of_awss_own_looks_where_it_says(base: dict[str, str], key: str, name: str, place: str) -> None:
    without_keys = {"aws.access.key.id": None, "aws.secret.access.key": None}
    assert loaded({**without_keys, key: name}, base).config.s3.credentials == place


def test_keys_next_to_a_class_are_used_and_that_is_noted() -> None:
    pair = {"aws.access.key.id": "AK", "aws.secret.access.key": "SK"}
    configuration = loaded({CLASS: "com.amazonaws.auth.InstanceProfileCredentialsProvider", **pair})
    assert S3Connection.from_settings(configuration.config.s3).access_key_id == "AK"
    assert "is not used: the connector takes the key pair" in bases.remarks_text(configuration)


def test_options_of_a_header_converter_are_noted() -> None:
    configuration = loaded({"header.converter.schemas.enable": "false"})
    assert "header.converter.schemas.enable: headers are read as text" in bases.remarks_text(configuration)
