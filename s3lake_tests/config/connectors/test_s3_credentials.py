"""Credentials, roles, proxies and encryption of a connector's file are used or refused, and never lost."""

import pytest

from s3lake.config.draft import LoadedConfig
from s3lake.errors import ConfigurationError
from s3lake.index.store.s3_connection import S3Connection
from s3lake_tests.config import bases
from s3lake_tests.kit.tables import rows

NAMED = {"WITHOUT_KEYS": dict.fromkeys(["aws.access.key.id", "aws.secret.access.key"])}
AIVENS = "aws.credentials.provider"


def load(changes: str) -> LoadedConfig:
    """Confluent's base with changes, whose keys begin with a dot below the provider; or Aiven's, if one is its own."""
    given = bases.changes(changes, **NAMED)
    is_aivens = any(key.startswith(("aws.sts", "aws.s3", AIVENS)) for key in given)
    settings = {f"s3.credentials.provider{key}" if key.startswith(".") else key: value for key, value in given.items()}
    return bases.load(bases.AIVEN if is_aivens else bases.CONFLUENT, settings)


SETTINGS = """
.access_key_id=AK + .secret_access_key=SK => s3.credentials.access_key_id: AK
.aws.access.key.id=AK + .aws.secret.access.key=SK => s3.credentials.access_key_id: AK
.access.key=AK + .secret.key=SK => s3.credentials.access_key_id: AK
.class=com.acme.StaticProvider + .access_key_id=AK + .secret_access_key=SK => s3.credentials.access_key_id: AK
.class=com.acme.StaticProvider + .aws.access.key.id=AK + .aws.secret.access.key=SK =>
    s3.credentials.access_key_id: AK
.class=com.acme.StaticProvider + .access.key=AK + .secret.key=SK => s3.credentials.secret_access_key: SK
.class=io.confluent.connect.s3.auth.AwsAssumeRoleCredentialsProvider + .sts.role.arn=arn:aws:iam::1:role/lake +
    .sts.role.external.id=ours + .sts.role.session.name=connect => s3.role.arn: "arn:aws:iam::1:role/lake",
    s3.role.external_id: ours, s3.role.session_name: connect
.class=a.WebIdentity + .role.arn=arn:aws:iam::1:role/lake + .web.identity.token.file=/run/token =>
    s3.role.arn: "arn:aws:iam::1:role/lake", s3.role.token_file: /run/token
.class=com.amazonaws.auth.profile.ProfileCredentialsProvider + .profile.name=lake =>
    s3.profile: lake, s3.credentials: profile
s3.ssea.name=aws:kms + s3.sse.kms.key.id=key-1 + s3.acl.canned=private =>
    s3.objects.encryption: "aws:kms", s3.objects.kms_key_id: key-1, s3.objects.acl: private
s3.ssea.name=aws:kms:dsse + s3.sse.kms.key.id=key-1 =>
    s3.objects.encryption: "aws:kms:dsse", s3.objects.kms_key_id: key-1
s3.acl.canned=bucket-owner-full-control => s3.objects.acl: bucket-owner-full-control
s3.acl.canned=BucketOwnerFullControl => s3.objects.acl: bucket-owner-full-control
s3.ssea.name=AES256 + s3.sse.customer.key=MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY= =>
    s3.objects.customer_key: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=, s3.objects.encryption: null
s3.proxy.url=http://proxy:3128 + s3.proxy.user=me + s3.proxy.password=hush-hush =>
    s3.proxy.url: "http://proxy:3128", s3.proxy.user: me, s3.proxy.password: hush-hush
s3.wan.mode=true => s3.accelerate: true, s3.path_style: false
aws.sts.role.arn=arn:aws:iam::1:role/lake + aws.sts.role.external.id=ours + aws.sts.role.session.duration=900 +
    aws.sts.config.endpoint=https://sts.eu-west-1.amazonaws.com => s3.role.arn: "arn:aws:iam::1:role/lake",
    s3.role.external_id: ours, s3.role.duration: 900, s3.role.endpoint_url: "https://sts.eu-west-1.amazonaws.com"
aws.s3.sse.algorithm=AES256 => s3.objects.encryption: AES256
s3.object.tagging=true + s3.object.tagging.key.value.pairs=team:data,cost:a:b =>
    s3.objects.tags: {team: data, cost: "a:b"}, s3.objects.offset_tags: tried
s3.object.tagging=true + s3.object.tagging.key.value.pairs=team:data => no remark: tagging
s3.object.tagging=true + s3.object.behavior.on.tagging.error=ignore => s3.objects.offset_tags: tried
s3.object.tagging=true + s3.object.behavior.on.tagging.error=fail => s3.objects.offset_tags: required
s3.object.tagging.key.value.pairs=team:data => s3.objects.tags: {}, s3.objects.offset_tags: null
s3.object.tagging.key.value.pairs=team:data => remark: pairs: changes nothing next to the other settings of this file
s3.object.behavior.on.tagging.error=fail => remark: error: changes nothing next to the other settings of this file
.class=com.amazonaws.auth.InstanceProfileCredentialsProvider + aws.access.key.id=AK + aws.secret.access.key=SK =>
    s3.credentials.access_key_id: AK
.class=com.amazonaws.auth.InstanceProfileCredentialsProvider + aws.access.key.id=AK + aws.secret.access.key=SK =>
    remark: is not used: the connector takes the key pair
header.converter.schemas.enable=false => remark: header.converter.schemas.enable: headers are read as text
"""
CLASSES = {
    "com.amazonaws.auth.EnvironmentVariableCredentialsProvider": "environment",
    "com.amazonaws.auth.InstanceProfileCredentialsProvider": "instance",
    "com.amazonaws.auth.profile.ProfileCredentialsProvider": "profile",
    "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider": "web_identity",
    "software.amazon.awssdk.auth.credentials.ContainerCredentialsProvider": "container",
    "software.amazon.awssdk.auth.credentials.AnonymousCredentialsProvider": "anonymous",
    "com.amazonaws.auth.DefaultAWSCredentialsProviderChain": "default",
}


@pytest.mark.parametrize(("changes", "expected"), rows(SETTINGS))
def test_keys_are_native_settings_of_s3(changes: str, expected: str) -> None:
    loaded = load(changes)
    bases.check(loaded, expected)
    assert S3Connection.from_settings(loaded.config.s3)


def test_a_tag_has_the_place_of_its_key() -> None:
    loaded = load("s3.object.tagging=true + s3.object.tagging.key.value.pairs=team:data")
    assert loaded.origins["s3", "objects", "tags", "team"].key == "s3.object.tagging.key.value.pairs"


def test_half_a_key_pair_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"s3\.credentials\.secret_access_key: is missing"):
        load(".access_key_id=AK")


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("key", [".class", AIVENS])
def test_a_class_of_aws_finds_credentials_where_its_name_says(key: str, name: str) -> None:
    bases.check(load(f"WITHOUT_KEYS + {key}={name}"), f"s3.credentials: {CLASSES[name]}")
