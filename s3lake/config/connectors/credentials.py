"""How connectors' files get into S3: key pairs, classes that give credentials, roles, proxies."""

from __future__ import annotations

import re

from s3lake.config.draft import Draft
from s3lake.config.keys import Given, Keys
from s3lake.config.setting import Setting

LOCAL_CHAIN = "boto3's own chain is used: environment, profile, web identity, instance role"
_OWN_CHAIN = (
    "DefaultAWSCredentialsProviderChain",
    "DefaultCredentialsProvider",
    "EnvironmentVariableCredentialsProvider",
    "InstanceProfileCredentialsProvider",
    "ProfileCredentialsProvider",
    "WebIdentityTokenCredentialsProvider",
    "WebIdentityTokenFileCredentialsProvider",
    "ContainerCredentialsProvider",
)
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
}
_PAIR = ("credentials.access_key_id", "credentials.secret_access_key")


def pair(keys: Keys, common: Draft, access: str, secret: str) -> None:
    """Static credentials: both keys, or neither."""
    one, other = keys.text(access), keys.text(secret)
    if bool(one.value) != bool(other.value):
        given, missing = (one, secret) if one.value else (other, access)
        keys.report.error(given.setting, f"{missing} is missing; give both or neither")
    elif one.value:
        common.put("s3.credentials.access_key_id", one)
        common.put("s3.credentials.secret_access_key", other)


def provider(keys: Keys, common: Draft, key: str) -> None:
    """A class that gives credentials: of what its options say, a key pair and a role are boto3's too.

    Options without a class are taken as well: nobody writes credentials in order not to use them.
    """
    found = keys.get(key)
    below = keys.below(f"{key.removesuffix('.class')}.") if key.endswith(".class") else []
    said = {}
    for one in [one for one in below if one.key != key and one.value]:
        native = _OPTIONS.get(_plain(one.key.removeprefix(key.removesuffix("class"))))
        if native is None:
            keys.wrong(one, f"is an option of a class of Java's, which cannot run here; {_INSTEAD}")
        else:
            said[native] = one
    if any(path in said for path in _PAIR) and not all(path in said for path in _PAIR):
        half = next(said[path] for path in _PAIR if path in said)
        keys.wrong(half, "is half of a key pair; give the access key and the secret key, or neither")
        return
    if any(path.startswith("role.") for path in said) and "role.arn" not in said:
        keys.wrong(next(iter(said.values())), "is of a role that has no ARN; add it, or take this out")
        return
    _use(keys, common, said)
    if found is None or not found.value:
        return
    name = found.value.rpartition(".")[2]
    if name in _OWN_CHAIN and "credentials.access_key_id" not in said:
        keys.report.notice(found, f"has no meaning: {LOCAL_CHAIN}")
    elif "role.arn" in said or (all(path in said for path in _PAIR) and "AssumeRole" not in name):
        keys.report.notice(found, "is not run: boto3 takes what its options say")
    else:
        keys.wrong(found, f"{found.shown} is a class of Java's and cannot run here; {_INSTEAD}")


def role(keys: Keys, common: Draft, prefix: str) -> None:
    """`PREFIXrole.arn` and what stands beside it: a role that the credentials assume."""
    arn = keys.text(f"{prefix}role.arn")
    endpoint = keys.text(f"{prefix}config.endpoint")
    beside: dict[str, Given[str] | Given[int]] = {
        "external_id": keys.text(f"{prefix}role.external.id"),
        "session_name": keys.text(f"{prefix}role.session.name"),
        "duration": keys.integer(f"{prefix}role.session.duration", 3600, 900, 43_200),
        "endpoint_url": endpoint,
    }
    if arn.value:
        common.put("s3.role.arn", arn)
    for name, one in beside.items():
        if one.setting is None or not one.value:
            continue
        if not arn.value:
            keys.wrong(one.setting, f"is of a role that has no ARN; add {prefix}role.arn, or take this out")
        else:
            common.put(f"s3.role.{name}", one)


def proxy(keys: Keys, common: Draft, prefix: str) -> None:
    """`PREFIXurl`, `user` and `password`: what requests to S3 go through."""
    url = keys.text(f"{prefix}url")
    if url.value:
        common.put("s3.proxy.url", url)
        told = "requests to S3 go through it; where it is S3's own address, write it as the endpoint instead"
        keys.report.notice(url.setting, told)
    for name in ("user", "password"):
        one = keys.text(f"{prefix}{name}")
        if one.setting is not None and one.value and url.value:
            common.put(f"s3.proxy.{name}", one)
        elif one.setting is not None and one.value:
            keys.report.notice(one.setting, f"has no meaning without {prefix}url")


def encryption(keys: Keys, common: Draft, algorithm: str) -> None:
    """How objects are encrypted: by S3's own keys, or by those of its key service."""
    given = keys.choice(algorithm, {"": None, "AES256": "AES256", "aws:kms": "aws:kms"}, "")
    if given.value is not None:
        common.put("s3.objects.encryption", given)


def _use(keys: Keys, common: Draft, said: dict[str, Setting]) -> None:
    for path, one in said.items():
        if common.get(f"s3.{path}") is not None:
            keys.wrong(one, "says the same as the connector's own keys of AWS; take one of them out")
            continue
        keys.report.secrets |= {one.value} if path.startswith("credentials.s") else set()
        common.put(f"s3.{path}", one.value, one)


def _plain(option: str) -> str:
    return re.sub(r"^(sts|aws)+", "", re.sub(r"[^a-z]", "", option.lower()))
