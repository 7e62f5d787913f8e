"""Access to S3 in connectors' files: key pairs, classes that give credentials, roles, proxies, encryption."""

from __future__ import annotations

import re

from s3lake.config.connector_keys import ConnectorKey, Keys, whole
from s3lake.config.draft import Draft
from s3lake.config.report import Value

LOCAL_CHAIN = "boto3's own chain is used: environment, profile, web identity, instance role"
_PLACES = {
    "DefaultAWSCredentialsProviderChain": "default",
    "DefaultCredentialsProvider": "default",
    "AwsCredentialsProviderChain": "default",
    "EC2ContainerCredentialsProviderWrapper": "default",
    "EnvironmentVariableCredentialsProvider": "environment",
    "ProfileCredentialsProvider": "profile",
    "ProcessCredentialsProvider": "profile",
    "WebIdentityTokenCredentialsProvider": "web_identity",
    "WebIdentityTokenFileCredentialsProvider": "web_identity",
    "StsWebIdentityTokenFileCredentialsProvider": "web_identity",
    "ContainerCredentialsProvider": "container",
    "InstanceProfileCredentialsProvider": "instance",
    "AnonymousCredentialsProvider": "anonymous",
    "AnonymousAWSCredentials": "anonymous",
}
"""AWS' own classes, of both versions of its SDK: where each looks for credentials, in words of `s3.credentials`."""
_INSTEAD = "take it out, and let boto3 find credentials, or give a role: s3lake.s3.role.arn"
_OPTIONS = {
    "accesskeyid": "s3.credentials.access_key_id",
    "accesskey": "s3.credentials.access_key_id",
    "secretaccesskey": "s3.credentials.secret_access_key",
    "secretkey": "s3.credentials.secret_access_key",
    "sessiontoken": "s3.credentials.session_token",
    "arn": "s3.role.arn",
    "externalid": "s3.role.external_id",
    "sessionname": "s3.role.session_name",
    "sessionduration": "s3.role.duration",
    "webidentitytokenfile": "s3.role.token_file",
    "tokenfile": "s3.role.token_file",
    "profile": "s3.profile",
    "profilename": "s3.profile",
}
_PAIR = ("s3.credentials.access_key_id", "s3.credentials.secret_access_key")


def put_pair(keys: Keys, sink: Draft, access: str, secret: str) -> None:
    """Put static credentials: both keys, or neither."""
    for name, other in ((access, secret), (secret, access)):
        if keys.has(name) and not keys.has(other):
            keys.error(keys.get(name), f"{other} is missing; give both or neither")
            return
    keys.put(sink, [ConnectorKey(name, path) for name, path in zip((access, secret), _PAIR, strict=True)])


def put_provider(keys: Keys, sink: Draft, key: str) -> None:
    """Put what a class that gives credentials has in its options: boto3 takes a key pair and a role too.

    Options without a class are used as well: credentials are written to be used.
    """
    provider, stem = keys.text(key), key.removesuffix("class")
    options = []
    for option in keys.with_prefix(stem) if stem.endswith(".") else ():
        path = _OPTIONS.get(_plain(option.key.removeprefix(stem)))
        if path is None and option.key != key and option.value:
            keys.error(option, f"is an option of a Java class, which cannot run here; {_INSTEAD}")
        elif path is not None and option.value and sink.get(path) is None:  # else the connector's own key counts
            options.append(path)
            sink.put(path, option.value, option)
    name = provider.value.rpartition(".")[2]
    place = _PLACES.get(name)
    if place is not None and isinstance(sink.get("s3.credentials"), dict):
        keys.note("is not used: the connector takes the key pair that is given too", provider)
    elif place == "default":
        keys.report.no_effect(provider.setting, LOCAL_CHAIN)
    elif place is not None:
        sink.put("s3.credentials", place, provider.setting)
    elif name and ("s3.role.arn" in options or ({*_PAIR} <= {*options} and "AssumeRole" not in name)):
        keys.note("is not run: boto3 takes its options", provider)
    elif provider.setting is not None and name:
        message = f"{provider.setting.masked_value} is a Java class, which cannot run here; {_INSTEAD}"
        keys.error(provider.setting, message)


def put_role(keys: Keys, sink: Draft, prefix: str) -> None:
    """Put `PREFIXrole.arn` and its options: a role that the credentials assume."""
    keys.put(
        sink if keys.has(f"{prefix}role.arn") else Draft(),
        [
            ConnectorKey(f"{prefix}role.arn", "s3.role.arn"),
            ConnectorKey(f"{prefix}role.external.id", "s3.role.external_id"),
            ConnectorKey(f"{prefix}role.session.name", "s3.role.session_name"),
            ConnectorKey(f"{prefix}role.session.duration", "s3.role.duration", whole(900, 43_200)),
            ConnectorKey(f"{prefix}config.endpoint", "s3.role.endpoint_url"),
        ],
    )


def put_proxy(keys: Keys, sink: Draft, prefix: str) -> None:
    """Put `PREFIXurl`, `user` and `password`: the proxy of requests to S3."""
    url = keys.text(f"{prefix}url")
    table = [ConnectorKey(f"{prefix}{name}", f"s3.proxy.{name}") for name in ("url", "user", "password")]
    keys.put(sink if url.value else Draft(), table)
    if url.value:
        keys.note("requests to S3 go through it; if it is S3's own address, write it as the endpoint instead", url)


def put_encryption(keys: Keys, sink: Draft, algorithm: str, kms_key: str = "", own_key: str = "") -> None:
    """Put how objects are encrypted: by S3's own keys, by its key service's, or by the owner's.

    Of these `algorithm` is the key that chooses, `kms_key` and `own_key` name or hold one if the connector has them.
    """
    methods = {"": None, "AES256": "AES256", "aws:kms": "aws:kms", "aws:kms:dsse": "aws:kms:dsse"}
    method = keys.choice(algorithm, methods, "")
    ours, theirs = (keys.text(key) if key else Value("") for key in (own_key, kms_key))
    if ours.value and method.value == "AES256":
        sink.put("s3.objects.customer_key", ours)
        return
    if ours.value:
        keys.error(ours.setting, f"is used with {algorithm}=AES256 only; write that, or take it out")
    if method.value is not None:
        sink.put("s3.objects.encryption", method)
    if theirs.value and (method.value or "").startswith("aws:kms"):
        sink.put("s3.objects.kms_key_id", theirs)
    elif theirs.value:
        keys.error(theirs.setting, f"is used with {algorithm}=aws:kms only; write that, or take it out")


def _plain(option: str) -> str:
    return re.sub(r"^(sts|aws|role)+", "", re.sub(r"[^a-z]", "", option.lower()))
