"""The rights that a configuration needs of S3, as a policy of IAM that allows those and no others."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from s3lake.cli.options import ConfigArgument, DialectOption, SinkOption, load, sinks_named
from s3lake.cli.terminal import err, write
from s3lake.sink import S3, Config, Sink
from s3lake.sink.collisions import begins
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
) -> None:
    """The least IAM policy with which a configuration's sinks are landed, rewritten, cleaned and verified."""
    loaded = load(config, dialect, to_land=False)
    policy = policy_of(loaded, sinks_named(loaded, sink), read_only=read_only)
    if loaded.s3.role is not None:
        err.print(
            f"notice: this is the policy of {loaded.s3.role.arn}; the credentials beside it need sts:AssumeRole on it",
            markup=False,
        )
    write(json.dumps(policy, indent=2) + "\n")


def policy_of(config: Config, sinks: Sequence[Sink], *, read_only: bool = False) -> dict[str, Any]:
    """The policy document.

    Args:
        config: says where the buckets are, and what objects are encrypted with.
        sinks: those that it is for.
        read_only: only what reading takes.
    """
    partition = _partition(config.s3.region)
    statements: list[dict[str, Any]] = []
    for bucket in sorted({sink.bucket for sink in sinks}):
        place = f"arn:{partition}:s3:::{bucket}"
        inside = [sink for sink in sinks if sink.bucket == bucket]
        # Without s3:ListBucket on the whole bucket S3 says 403 and not 404 of an object that is not there, and half of
        # what a commit asks is whether something is there.
        listing = ["s3:ListBucket"]
        if not read_only and any(begins(sink) for sink in inside):
            listing.append("s3:ListBucketMultipartUploads")
        statements.append({"Effect": "Allow", "Action": listing, "Resource": place})
        actions = [*(_READ if read_only else _WRITE), *([] if read_only else _of_objects(config.s3.objects))]
        keys = _outermost(key for sink in inside for key in _places(sink, read_only=read_only))
        statements.append(
            {"Effect": "Allow", "Action": actions, "Resource": [f"{place}/{_plain(key)}*" for key in keys]}
        )
    return {"Version": "2012-10-17", "Statement": statements + _of_keys(config.s3, partition, read_only=read_only)}


def _of_objects(objects: Objects) -> list[str]:
    """What an ACL and tags take, though they come with the request that creates the object."""
    rights = {"s3:PutObjectAcl": objects.acl, "s3:PutObjectTagging": objects.tags}
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


def _of_keys(s3: S3, partition: str, *, read_only: bool) -> list[dict[str, Any]]:
    """What a key of one's own takes; S3's own key (`aws/s3`) is open to everyone in the account who may use S3."""
    key = s3.objects.kms_key_id
    if key is None or not (s3.objects.encryption or "").startswith("aws:kms"):
        return []
    # Completing an upload of several parts decrypts them.
    statement: dict[str, Any] = {"Effect": "Allow", "Action": ["kms:Decrypt"]}
    if not read_only:
        statement["Action"].append("kms:GenerateDataKey")
    keys = f"arn:{partition}:kms:{s3.region}:*:key"
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
