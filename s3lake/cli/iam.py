"""The rights that a configuration needs of S3, as a policy of IAM that allows those and no others."""

import json
import re
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Annotated, Any

import typer

from s3lake.cli.options import ConfigArgument, DialectOption, SinkOption, load, sinks_named
from s3lake.cli.terminal import err, write
from s3lake.errors import ConfigurationError
from s3lake.sink import S3, Config, Sink
from s3lake.sink.collisions import begins
from s3lake.sink.connections import Role
from s3lake.sink.objects import Objects

_READ = ("s3:GetObject",)
_WRITE = ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject")
_KEY_ID = re.compile(r"(mrk-)?[0-9a-f-]{32,36}")


def iam(
    config: ConfigArgument = None,
    dialect: DialectOption = None,
    sink: SinkOption = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="For who reads what was landed: downstream assets, verify, metrics.")
    ] = False,
    caller: Annotated[
        bool, typer.Option("--caller", help="For the credentials that assume the configuration's role.")
    ] = False,
) -> None:
    """The least IAM policy with which a configuration's sinks are landed, rewritten, cleaned and verified."""
    loaded = load(config, dialect, to_land=False)
    sinks = sinks_named(loaded, sink)
    roles = [role for sink in sinks if (role := loaded.s3_of(sink).role) is not None]
    if caller and not roles:
        raise ConfigurationError("--caller: no role is assumed: leave it out, or name one as s3.role.arn")
    if not caller:
        for line in dict.fromkeys(map(_of_whom, roles)):
            err.print(f"notice: {line}", markup=False)
    policy = policy_of_caller(roles) if caller else policy_of(loaded, sinks, read_only=read_only)
    write(json.dumps(policy, indent=2) + "\n")


def _of_whom(role: Role) -> str:
    if role.token_file is not None:
        return f"this is the policy of {role.arn}, whose trust policy has to allow sts:AssumeRoleWithWebIdentity"
    return f"this is the policy of {role.arn}; the credentials beside it need sts:AssumeRole on it (--caller)"


def policy_of_caller(roles: Iterable[Role]) -> dict[str, Any]:
    """What credentials need that assume roles; a web identity needs nothing but the trust of its role."""
    arns = sorted({role.arn for role in roles if role.token_file is None})
    allowed = [{"Effect": "Allow", "Action": ["sts:AssumeRole"], "Resource": arns}] if arns else []
    return {"Version": "2012-10-17", "Statement": allowed}


def policy_of(config: Config, sinks: Sequence[Sink], *, read_only: bool = False) -> dict[str, Any]:
    """The policy document.

    Args:
        config: says where the buckets are, and what objects are encrypted with.
        sinks: those that it is for.
        read_only: only what reading takes.
    """
    statements: list[dict[str, Any]] = []
    keys: list[dict[str, Any]] = []
    # Sinks that say themselves how their bucket is reached may ask something else of it.
    for inside in _alike(config, sinks):
        s3 = config.s3_of(inside[0])
        place = f"arn:{_partition(s3.region)}:s3:::{inside[0].bucket}"
        # Without s3:ListBucket on the whole bucket S3 says 403 and not 404 of an object that is not there, and half of
        # what a commit asks is whether something is there.
        listing = ["s3:ListBucket"]
        if not read_only and any(begins(sink) for sink in inside):
            listing.append("s3:ListBucketMultipartUploads")
        actions = [*(_READ if read_only else _WRITE), *([] if read_only else _of_objects(s3.objects))]
        beginnings = _outermost(key for sink in inside for key in _places(sink, read_only=read_only))
        resources = [f"{place}/{_plain(key)}*" for key in beginnings]
        statements.append({"Effect": "Allow", "Action": listing, "Resource": place})
        statements.append({"Effect": "Allow", "Action": actions, "Resource": resources})
        keys += [statement for statement in _of_keys(s3, read_only=read_only) if statement not in keys]
    return {"Version": "2012-10-17", "Statement": statements + keys}


def _alike(config: Config, sinks: Sequence[Sink]) -> Iterable[list[Sink]]:
    """Sinks of one bucket that is reached alike."""
    left = sorted(sinks, key=attrgetter("bucket"))
    while left:
        first = left[0]
        inside = [sink for sink in left if (sink.bucket, config.s3_of(sink)) == (first.bucket, config.s3_of(first))]
        yield inside
        left = [sink for sink in left if sink not in inside]


def _of_objects(objects: Objects) -> list[str]:
    """What an ACL and tags take, though they come with the request that creates the object."""
    rights = {"s3:PutObjectAcl": objects.acl, "s3:PutObjectTagging": objects.tags or objects.offset_tags}
    return [right for right, asked in rights.items() if asked]


def _places(sink: Sink, *, read_only: bool) -> Iterable[str]:
    """What the keys begin with that the sink reads and writes: index, dead letters, trials, data."""
    yield f"{sink.index.prefix}/{sink.name}/"
    if not read_only:
        yield f"{sink.root}.probe/"
    yield from begins(sink) or (sink.root,)


def _outermost(keys: Iterable[str]) -> list[str]:
    """Those that lie in no other one."""
    kept: list[str] = []
    for key in sorted(set(keys)):
        if not kept or not key.startswith(kept[-1]):
            kept.append(key)
    return kept


def _plain(key: str) -> str:
    """A key's characters, where IAM would read `*`, `?` and `$` otherwise."""
    return re.sub(r"[*?$]", lambda match: f"${{{match[0]}}}", key)


def _of_keys(s3: S3, *, read_only: bool) -> list[dict[str, Any]]:
    """What a key of one's own takes; S3's own key (`aws/s3`) is open to everyone in the account who may use S3."""
    key = s3.objects.kms_key_id
    if key is None or not (s3.objects.encryption or "").startswith("aws:kms"):
        return []
    # Completing an upload of several parts decrypts them.
    statement: dict[str, Any] = {"Effect": "Allow", "Action": ["kms:Decrypt"]}
    if not read_only:
        statement["Action"].append("kms:GenerateDataKey")
    keys = f"arn:{_partition(s3.region)}:kms:{s3.region}:*:key"
    if _KEY_ID.fullmatch(key):
        return [statement | {"Resource": f"{keys}/{key}"}]
    if ":key/" in key:
        return [statement | {"Resource": key}]
    alias = key.rpartition(":")[2]
    return [
        statement | {"Resource": f"{keys}/*", "Condition": {"ForAnyValue:StringEquals": {"kms:ResourceAliases": alias}}}
    ]


def _partition(region: str) -> str:
    for start, partition in (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov")):
        if region.startswith(start):
            return partition
    return "aws"
