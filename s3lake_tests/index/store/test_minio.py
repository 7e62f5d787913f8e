"""A store that enforces rights, keys and encryption: landing under exactly the policy that `s3lake iam` prints."""

import json
from dataclasses import replace
from typing import Any

import boto3
import pytest

from s3lake.cli.iam import policy_of
from s3lake.config.model import S3, Config, Kafka
from s3lake.demo.embedded_s3 import EmbeddedS3
from s3lake.errors import StoreDeniedError
from s3lake.index.commit.documents import Read
from s3lake.index.commit.protocol import Attempt
from s3lake.index.store import COMMIT, trial
from s3lake.index.store.client import make_client
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.land.hour.landing import land, rewrite
from s3lake_tests.index.store.conftest import BUCKET
from s3lake_tests.kit.s3 import MINIO_KEY, connection_to
from s3lake_tests.land.unstaged import FIRST, Filed, UnstagedTopic

pytestmark = pytest.mark.slow("MinIO, which enforces rights")

NEEDED = ("s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
LISTING = "s3:ListBucketMultipartUploads"
OF_AWS = "s3:PutObjectTagging"
"""MinIO takes tags from whoever may create the object; AWS asks for this too."""
OBJECTS = {"tags": {"team": "data"}, "offset_tags": "required", "encryption": "AES256"}


class Dated(Filed):
    """Its files lie where the layout has them."""

    def _key(self, attempt: Attempt, partition: int, read: Read) -> str:
        return f"{self.sink.prefix}/{self.topic}/date=2026-01-05/{partition}-{read.start}{attempt.suffix}.txt"


class Enforced(UnstagedTopic):
    """The same topic, landed by whoever has these credentials."""

    lands = Dated

    def __init__(self, connection: S3Connection, prefix: str) -> None:
        super().__init__(bucket=BUCKET, prefix=f"{prefix}raw", index={"prefix": f"{prefix}.indexes"})
        self.store = S3Store(connection, BUCKET)

    @property
    def config(self) -> Config:
        """What `s3lake iam` is asked of."""
        s3 = S3.model_validate({"objects": OBJECTS})
        return Config(kafka=Kafka(bootstrap_servers="nowhere:1"), s3=s3, sinks=(self.sink,))

    def land(self) -> None:
        """All that a sink's life asks of a store, after a run that crashed with an upload under way."""
        target = self.target()
        left = f"{self.sink.prefix}/{target.topic}/date=2026-01-05/left"
        self.store.abort_upload(left, self.store.create_upload(left, {COMMIT: "c"}))
        land(target, [FIRST])
        rewrite(target, FIRST)
        target.clean()


@pytest.fixture(autouse=True)
def _nothing_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "tried", trial.TriedStores())


def allowed(server: EmbeddedS3, document: dict[str, Any]) -> S3Connection:
    """Credentials with which the store does what a policy allows, and nothing else."""
    root = connection_to(server)
    tokens = boto3.client(
        "sts",
        endpoint_url=server.endpoint_url,
        region_name=server.region,
        aws_access_key_id=server.access_key_id,
        aws_secret_access_key=server.secret_access_key,
    )
    given = tokens.assume_role(
        RoleArn="arn:aws:iam::123456789012:role/lake", RoleSessionName="landing", Policy=json.dumps(document)
    )["Credentials"]
    tokens.close()
    asked = S3Connection.from_settings(S3.model_validate({"endpoint_url": server.endpoint_url, "objects": OBJECTS}))
    return replace(
        asked,
        region=root.region,
        access_key_id=given["AccessKeyId"],
        secret_access_key=given["SecretAccessKey"],
        session_token=given["SessionToken"],
        backoff_ms=1,
    )


def without(document: dict[str, Any], action: str) -> dict[str, Any]:
    kept = [{**one, "Action": [other for other in one["Action"] if other != action]} for one in document["Statement"]]
    assert kept != document["Statement"]
    return {**document, "Statement": [one for one in kept if one["Action"]]}


def test_the_printed_policy_allows_all_that_is_done_and_nothing_else(minio: EmbeddedS3, prefix: str) -> None:
    world = Enforced(connection_to(minio), prefix)
    document = policy_of(world.config, world.config.sinks)
    assert {action for one in document["Statement"] for action in one["Action"]} == {*NEEDED, LISTING, OF_AWS}
    world = Enforced(allowed(minio, document), prefix)
    world.land()
    for key in (f"{prefix}raw/other", f"{prefix}.indexes/clicks/topic.json"):
        with pytest.raises(StoreDeniedError, match="PutObject"):
            world.store.put(key, b"")
    plain = make_client(connection_to(minio))
    keys = [one["Key"] for one in plain.list_objects_v2(Bucket=BUCKET, Prefix=f"{prefix}raw/")["Contents"]]
    assert len(keys) == 1
    head = plain.head_object(Bucket=BUCKET, Key=keys[0])
    assert head["ServerSideEncryption"] == "AES256"
    tags = plain.get_object_tagging(Bucket=BUCKET, Key=keys[0])["TagSet"]
    assert {tag["Key"] for tag in tags} == {"team", "startOffset", "endOffset", "recordCount"}


@pytest.mark.parametrize("action", NEEDED)
def test_landing_is_refused_with_the_action_that_the_policy_lacks(minio: EmbeddedS3, prefix: str, action: str) -> None:
    world = Enforced(connection_to(minio), prefix)
    document = without(policy_of(world.config, world.config.sinks), action)
    with pytest.raises(StoreDeniedError, match=action):
        Enforced(allowed(minio, document), prefix).land()


def test_uploads_of_crashed_writers_are_left_when_uploads_may_not_be_listed(
    minio: EmbeddedS3, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    world = Enforced(connection_to(minio), prefix)
    Enforced(allowed(minio, without(policy_of(world.config, world.config.sinks), LISTING)), prefix).land()
    assert f"left to the bucket's lifecycle rule: ListMultipartUploads s3://{BUCKET}/{prefix}raw/" in caplog.text
    assert LISTING in caplog.text


def test_a_key_of_the_store_s_own_management_encrypts_what_names_it(minio: EmbeddedS3, prefix: str) -> None:
    asked = S3Connection.from_settings(
        S3.model_validate({"objects": {"encryption": "aws:kms", "kms_key_id": MINIO_KEY}})
    )
    store = S3Store(replace(connection_to(minio), created_with=asked.created_with), BUCKET)
    trial.try_store(store, f"{prefix}.indexes", f"{prefix}raw/")
    store.put(f"{prefix}a", b"one")
    head = make_client(connection_to(minio)).head_object(Bucket=BUCKET, Key=f"{prefix}a")
    assert (head["ServerSideEncryption"], head["SSEKMSKeyId"]) == ("aws:kms", f"arn:aws:kms:{MINIO_KEY}")
