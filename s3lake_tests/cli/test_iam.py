"""`s3lake iam`: the policy allows what landing, rewriting, cleaning and verifying ask of S3, and no more."""

import json
from pathlib import Path
from typing import Any

import pytest

from s3lake.cli.iam import policy_of, policy_of_caller
from s3lake.config import native
from s3lake.config.model.s3 import Role
from s3lake_tests.kit.console import Run
from s3lake_tests.kit.lake import START


def policy(*sinks: str, s3: str = "{}", read_only: bool = False) -> dict[str, Any]:
    started = "".join(f"  - {{{sink}, start: {START}}}\n" for sink in sinks)
    config = native.load_text(f"kafka: {{bootstrap_servers: 'kafka:9092'}}\ns3: {s3}\nsinks:\n{started}", "test.yaml")
    return policy_of(config, config.sinks, read_only=read_only)


def resources(document: dict[str, Any]) -> list[str]:
    """Of the statement about objects."""
    [found] = [one["Resource"] for one in document["Statement"] if "s3:GetObject" in one["Action"]]
    return [one.removeprefix("arn:aws:s3:::") for one in found]


ARN = "arn:aws:iam::123456789012:role/lake"
ORDERS = "name: events, topics: [orders], bucket: lake"


DEAD_LETTERS = "_dead_letters/events/orders/*"


@pytest.mark.parametrize(
    ("sink", "objects"),
    [
        (f"{ORDERS}, prefix: raw", ["raw/.probe/*", f"raw/{DEAD_LETTERS}", "raw/orders/date=*"]),
        (
            f"{ORDERS}, prefix: 'ra*$w'",
            [f"ra${{*}}${{$}}w/{key}" for key in (".probe/*", DEAD_LETTERS, "orders/date=*")],
        ),
        ("name: events, topics_regex: 'orders.*', bucket: lake, prefix: raw", ["raw/*"]),
        (
            f"{ORDERS}, layout: {{template: 'landed/{{time:yyyy}}/{{topic}}+{{partition}}+{{offset}}'}}",
            [".probe/*", DEAD_LETTERS, "landed/*"],
        ),
    ],
)
def test_objects_are_those_of_index_topic_dead_letters_and_trials(sink: str, objects: list[str]) -> None:
    assert sorted(resources(policy(sink))) == sorted(["lake/.indexes/events/*", *(f"lake/{key}" for key in objects)])


def test_a_policy_covers_the_whole_bucket_and_lists_no_uploads_when_the_layout_begins_with_a_field() -> None:
    document = policy(f"{ORDERS}, layout: {{template: '{{field:type}}/{{topic}}+{{partition}}+{{offset}}'}}")
    assert resources(document) == ["lake/*"]
    assert document["Statement"][0]["Action"] == ["s3:ListBucket"]


def test_a_policy_for_reading_allows_no_write_delete_or_trial() -> None:
    document = policy(f"{ORDERS}, prefix: raw", read_only=True)
    assert [one["Action"] for one in document["Statement"]] == [["s3:ListBucket"], ["s3:GetObject"]]
    assert "lake/raw/.probe/*" not in resources(document)


def test_a_sink_that_asks_something_else_of_s3_has_its_own_statements() -> None:
    own = "s3: {region: cn-north-1, objects: {tags: {team: data}}}"
    document = policy(ORDERS, f"name: clicks, topics: [clicks], bucket: other, {own}")
    rights = {one["Resource"][0]: "s3:PutObjectTagging" in one["Action"] for one in document["Statement"][1::2]}
    assert rights == {
        "arn:aws:s3:::lake/.indexes/events/*": False,
        "arn:aws-cn:s3:::other/.indexes/clicks/*": True,
    }


def test_every_bucket_has_its_own_statements() -> None:
    document = policy(ORDERS, "name: clicks, topics: [clicks], bucket: other")
    listed = [one["Resource"] for one in document["Statement"] if "s3:ListBucket" in one["Action"]]
    assert listed == ["arn:aws:s3:::lake", "arn:aws:s3:::other"]


@pytest.mark.parametrize(
    ("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov"), ("eu-west-1", "aws")]
)
def test_arns_are_of_the_regions_partition(region: str, partition: str) -> None:
    assert policy(ORDERS, s3=f"{{region: {region}}}")["Statement"][0]["Resource"] == f"arn:{partition}:s3:::lake"


KEY = "1234abcd-12ab-34cd-56ef-1234567890ab"


@pytest.mark.parametrize(
    ("key", "resource"),
    [
        (KEY, f"arn:aws:kms:eu-west-1:*:key/{KEY}"),
        (f"arn:aws:kms:eu-west-1:123456789012:key/{KEY}", f"arn:aws:kms:eu-west-1:123456789012:key/{KEY}"),
    ],
)
def test_a_key_of_ones_own_is_allowed_by_its_arn(key: str, resource: str) -> None:
    objects = f"{{region: eu-west-1, objects: {{encryption: 'aws:kms', kms_key_id: '{key}'}}}}"
    statement = policy(ORDERS, s3=objects)["Statement"][-1]
    assert (statement["Action"], statement["Resource"]) == (["kms:Decrypt", "kms:GenerateDataKey"], resource)


def test_a_key_by_its_alias_is_allowed_by_a_condition() -> None:
    statement = policy(ORDERS, s3="{objects: {encryption: 'aws:kms', kms_key_id: alias/lake}}")["Statement"][-1]
    assert statement["Condition"] == {"ForAnyValue:StringEquals": {"kms:ResourceAliases": "alias/lake"}}


@pytest.mark.parametrize(
    ("objects", "action"),
    [("tags: {team: data}", "Tagging"), ("offset_tags: tried", "Tagging"), ("acl: private", "Acl")],
)
def test_tags_and_an_acl_take_their_own_right(objects: str, action: str) -> None:
    s3 = f"{{objects: {{{objects}}}}}"
    assert f"s3:PutObject{action}" in policy(ORDERS, s3=s3)["Statement"][1]["Action"]
    assert policy(ORDERS, s3=s3, read_only=True)["Statement"][1]["Action"] == ["s3:GetObject"]


ROLE = f"s3: {{role: {{arn: '{ARN}'}}}}"


def write_config(path: Path, s3: str) -> Path:
    path.write_text(f"kafka: {{bootstrap_servers: 'kafka:9092'}}\n{s3}\nsinks:\n- {{{ORDERS}, start: {START}}}\n")
    return path


def test_the_command_prints_the_policy_and_names_its_owner(run: Run, tmp_path: Path) -> None:
    outcome = run("iam", write_config(tmp_path / "s3lake.yaml", ROLE))
    assert (outcome.code, json.loads(outcome.out)) == (0, policy(ORDERS))
    assert f"this is the policy of {ARN}" in outcome.err


def test_the_callers_policy_is_the_right_to_assume_and_a_web_identity_needs_none() -> None:
    assumed, by_token = (Role(arn=ARN, token_file=token) for token in (None, "/var/run/token"))
    allowed = {"Effect": "Allow", "Action": ["sts:AssumeRole"], "Resource": [ARN]}
    assert policy_of_caller([assumed, assumed])["Statement"] == [allowed]
    assert policy_of_caller([by_token])["Statement"] == []


@pytest.mark.parametrize(
    ("s3", "exit_code", "words"),
    [(ROLE, 0, '"sts:AssumeRole"'), ("", 2, "no role is assumed: leave it out")],
)
def test_the_command_prints_the_callers_policy_where_there_is_a_role(
    s3: str, exit_code: int, words: str, run: Run, tmp_path: Path
) -> None:
    outcome = run("iam", write_config(tmp_path / "s3lake.yaml", s3), "--caller")
    assert outcome.code == exit_code
    assert words in outcome.out + outcome.err
