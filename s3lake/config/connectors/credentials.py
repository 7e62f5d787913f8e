"""Access to S3 in connectors' files: key pairs, classes that give credentials, roles, proxies, encryption."""

from __future__ import annotations

import re

from s3lake.config.draft import Draft
from s3lake.config.keys import Keys, Value
from s3lake.config.report import Setting

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
    "accesskeyid": "credentials.access_key_id",
    "accesskey": "credentials.access_key_id",
    "secretaccesskey": "credentials.secret_access_key",
    "secretkey": "credentials.secret_access_key",
    "sessiontoken": "credentials.session_token",
    "rolearn": "role.arn",
    "roleexternalid": "role.external_id",
    "externalid": "role.external_id",
    "rolesessionname": "role.session_name",
    "sessionname": "role.session_name",
    "rolesessionduration": "role.duration",
    "sessionduration": "role.duration",
    "webidentitytokenfile": "role.token_file",
    "tokenfile": "role.token_file",
    "profile": "profile",
    "profilename": "profile",
}
_SECRET = ("credentials.secret_access_key", "credentials.session_token", "role.external_id")
_PAIR = ("credentials.access_key_id", "credentials.secret_access_key")


def pair(keys: Keys, common: Draft, access: str, secret: str) -> None:
    """Put static credentials: both keys, or neither."""
    identity, other = keys.text(access), keys.text(secret)
    if bool(identity.value) != bool(other.value):
        present, missing = (identity, secret) if identity.value else (other, access)
        keys.report.error(present.setting, f"{missing} is missing; give both or neither")
    elif identity.value:
        common.put("s3.credentials.access_key_id", identity)
        common.put("s3.credentials.secret_access_key", other)


def provider(keys: Keys, common: Draft, key: str) -> None:
    """Put what a class that gives credentials has in its options: boto3 takes a key pair and a role too.

    Options without a class are taken as well: nobody writes credentials in order not to use them.
    """
    provider_class = keys.get(key)
    below = keys.with_prefix(f"{key.removesuffix('.class')}.") if key.endswith(".class") else []
    options = {}
    for option in [option for option in below if option.key != key and option.value]:
        native = _OPTIONS.get(_plain(option.key.removeprefix(key.removesuffix("class"))))
        if native is None:
            keys.wrong(option, f"is an option of a class of Java's, which cannot run here; {_INSTEAD}")
        else:
            options[native] = option
    if any(path in options for path in _PAIR) and not all(path in options for path in _PAIR):
        half = next(options[path] for path in _PAIR if path in options)
        keys.wrong(half, "is half of a key pair; give the access key and the secret key, or neither")
        return
    if any(path.startswith("role.") for path in options) and "role.arn" not in options:
        keys.wrong(next(iter(options.values())), "is of a role that has no ARN; add it, or take this out")
        return
    _use(keys, common, options)
    if provider_class is None or not provider_class.value:
        return
    name = provider_class.value.rpartition(".")[2]
    place = _PLACES.get(name)
    if place is not None and isinstance(common.get("s3.credentials"), dict):
        keys.report.notice(provider_class, "is not asked: the connector takes the key pair that is next to it")
    elif place == "default":
        keys.report.no_effect(provider_class, LOCAL_CHAIN)
    elif place is not None:
        common.put("s3.credentials", place, provider_class)
    elif "role.arn" in options or (all(path in options for path in _PAIR) and "AssumeRole" not in name):
        keys.report.notice(provider_class, "is not run: boto3 takes what its options say")
    else:
        keys.wrong(
            provider_class, f"{provider_class.masked_value} is a class of Java's and cannot run here; {_INSTEAD}"
        )


def role(keys: Keys, common: Draft, prefix: str) -> None:
    """Put `PREFIXrole.arn` and its options: a role that the credentials assume."""
    arn = keys.text(f"{prefix}role.arn")
    endpoint = keys.text(f"{prefix}config.endpoint")
    beside: dict[str, Value[str] | Value[int]] = {
        "external_id": keys.text(f"{prefix}role.external.id"),
        "session_name": keys.text(f"{prefix}role.session.name"),
        "duration": keys.integer(f"{prefix}role.session.duration", 3600, 900, 43_200),
        "endpoint_url": endpoint,
    }
    if arn.value:
        common.put("s3.role.arn", arn)
    for name, option in beside.items():
        if option.setting is None or not option.value:
            continue
        if not arn.value:
            keys.wrong(option.setting, f"is of a role that has no ARN; add {prefix}role.arn, or take this out")
        else:
            common.put(f"s3.role.{name}", option)


def proxy(keys: Keys, common: Draft, prefix: str) -> None:
    """Put `PREFIXurl`, `user` and `password`: the proxy of requests to S3."""
    url = keys.text(f"{prefix}url")
    if url.value:
        common.put("s3.proxy.url", url)
        message = "requests to S3 go through it; where it is S3's own address, write it as the endpoint instead"
        keys.report.notice(url.setting, message)
    for name in ("user", "password"):
        option = keys.text(f"{prefix}{name}")
        if option.setting is not None and option.value and url.value:
            common.put(f"s3.proxy.{name}", option)
        elif option.setting is not None and option.value:
            keys.report.notice(option.setting, f"has no effect without {prefix}url")


def encryption(keys: Keys, common: Draft, algorithm: str, kms_key: str = "", own_key: str = "") -> None:
    """Put how objects are encrypted: by S3's own keys, by those of its key service, or by the owner's.

    Args:
        algorithm: the key that says how.
        kms_key: the key that names the key service's, where the connector has one.
        own_key: the key that holds one of the owner's, where the connector has one.
    """
    methods = {"": None, "AES256": "AES256", "aws:kms": "aws:kms", "aws:kms:dsse": "aws:kms:dsse"}
    method = keys.choice(algorithm, methods, "")
    ours = keys.text(own_key) if own_key else Value("")
    if ours.setting is not None and ours.value:
        keys.report.secrets.add(ours.value)
        if method.value == "AES256":
            common.put("s3.objects.customer_key", ours)
            return
        keys.wrong(ours.setting, f"is used with {algorithm}=AES256 only; write that, or take it out")
    if method.value is not None:
        common.put("s3.objects.encryption", method)
    theirs = keys.text(kms_key) if kms_key else Value("")
    if theirs.setting is None or not theirs.value:
        return
    if (method.value or "").startswith("aws:kms"):
        common.put("s3.objects.kms_key_id", theirs)
    else:
        keys.wrong(theirs.setting, f"is used with {algorithm}=aws:kms only; write that, or take it out")


def _use(keys: Keys, common: Draft, options: dict[str, Setting]) -> None:
    for path, option in options.items():
        if common.get(f"s3.{path}") is not None:
            keys.wrong(option, "says the same as the connector's own keys of AWS; take one of them out")
            continue
        keys.report.secrets |= {option.value} if path in _SECRET else set()
        value = int(option.value) if path == "role.duration" and option.value.isdigit() else option.value
        common.put(f"s3.{path}", value, option)


def _plain(option: str) -> str:
    return re.sub(r"^(sts|aws)+", "", re.sub(r"[^a-z]", "", option.lower()))
