"""The command that prints the IAM policy with exactly the permissions that a configuration needs."""

import json
import re
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from s3lake.cli.output import err, write
from s3lake.cli.request import Request
from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    from s3lake.config.model import S3, Config, Sink
    from s3lake.config.model.s3 import Objects, Role

_READ = ("s3:GetObject",)
_WRITE = ("s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject")
_KEY_ID = re.compile(r"(mrk-)?[0-9a-f-]{32,36}")


def run_iam(
    request: Request,
    read_only: Annotated[
        bool,
        typer.Option("--read-only", help="For readers of landed data: downstream assets, verify, status, metrics."),
    ] = False,
    caller: Annotated[
        bool, typer.Option("--caller", help="For the credentials that assume the configuration's role.")
    ] = False,
) -> None:
    """Print the minimal IAM policy.

    It is enough to land, rewrite, clean and verify the sinks of a configuration.
    """
    config = request.load(to_land=False)
    sinks = request.sinks(config)
    roles = [role for sink in sinks if (role := config.s3_of(sink).role) is not None]
    if caller and not roles:
        raise ConfigurationError("--caller: no role is assumed: leave it out, or name one as s3.role.arn")
    if not caller:
        for line in dict.fromkeys(map(_describe_role, roles)):
            err.print(f"notice: {line}")
    policy = policy_of_caller(roles) if caller else policy_of(config, sinks, read_only=read_only)
    write(json.dumps(policy, indent=2) + "\n")


def _describe_role(role: "Role") -> str:
    if role.token_file is not None:
        return f"this is the policy of {role.arn}, whose trust policy has to allow sts:AssumeRoleWithWebIdentity"
    return f"this is the policy of {role.arn}; the credentials that assume it need sts:AssumeRole on it (--caller)"


def policy_of_caller(roles: "Iterable[Role]") -> dict[str, Any]:
    """Return the policy for credentials that assume roles. A web identity needs only the trust of its role."""
    arns = sorted({role.arn for role in roles if role.token_file is None})
    allowed = [{"Effect": "Allow", "Action": ["sts:AssumeRole"], "Resource": arns}] if arns else []
    return {"Version": "2012-10-17", "Statement": allowed}


def policy_of(config: "Config", sinks: "Sequence[Sink]", *, read_only: bool = False) -> dict[str, Any]:
    """Return the policy for sinks of a configuration; with `read_only` only the permissions to read."""
    from s3lake.config.model.key_space import key_prefixes, select_outermost

    statements: list[dict[str, Any]] = []
    keys: list[dict[str, Any]] = []
    # Sinks with S3 settings of their own may need other permissions.
    for inside in _group_sinks(config, sinks):
        s3 = config.s3_of(inside[0])
        place = f"arn:{_partition(s3.region)}:s3:::{inside[0].bucket}"
        # Without s3:ListBucket on the whole bucket S3 answers 403, not 404, for an object that does not exist, and a
        # commit often checks whether an object exists.
        listing = ["s3:ListBucket"]
        if not read_only and any(key_prefixes(sink) for sink in inside):
            listing.append("s3:ListBucketMultipartUploads")
        actions = [*(_READ if read_only else _WRITE), *([] if read_only else _object_actions(s3.objects))]
        beginnings = select_outermost(key for sink in inside for key in _key_prefixes(sink, read_only=read_only))
        resources = [f"{place}/{_escape_key(key)}*" for key in beginnings]
        statements.append({"Effect": "Allow", "Action": listing, "Resource": place})
        statements.append({"Effect": "Allow", "Action": actions, "Resource": resources})
        keys += [statement for statement in _key_statements(s3, read_only=read_only) if statement not in keys]
    return {"Version": "2012-10-17", "Statement": statements + keys}


def _group_sinks(config: "Config", sinks: "Sequence[Sink]") -> "Iterable[list[Sink]]":
    """Group sinks by bucket and S3 settings."""
    left = sorted(sinks, key=attrgetter("bucket"))
    while left:
        first = left[0]
        inside = [sink for sink in left if (sink.bucket, config.s3_of(sink)) == (first.bucket, config.s3_of(first))]
        yield inside
        left = [sink for sink in left if sink not in inside]


def _object_actions(objects: "Objects") -> list[str]:
    """Return the permissions for ACL and tags: "S3" needs them though one request creates the object with both."""
    rights = {"s3:PutObjectAcl": objects.acl, "s3:PutObjectTagging": objects.tags or objects.offset_tags}
    return [right for right, asked in rights.items() if asked]


def _key_prefixes(sink: "Sink", *, read_only: bool) -> Iterable[str]:
    """Yield the prefixes of keys that the sink reads and writes: index, probes, dead letters, data."""
    from s3lake.config.model.key_space import key_prefixes

    yield f"{sink.index_root}/"
    if not read_only:
        yield f"{sink.root}.probe/"
    yield from key_prefixes(sink) or (sink.root,)


def _escape_key(key: str) -> str:
    """Escape the characters that IAM gives a meaning: `*`, `?` and `$`."""
    return re.sub(r"[*?$]", lambda match: f"${{{match[0]}}}", key)


def _key_statements(s3: "S3", *, read_only: bool) -> list[dict[str, Any]]:
    """Return the permissions for a KMS key of the user's own. The key `aws/s3` is open to all users of S3."""
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
