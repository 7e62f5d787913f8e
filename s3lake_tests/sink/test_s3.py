"""Settings of S3, and the ones that cannot be used together."""

import base64
from typing import Any

import pytest

from s3lake.sink import S3

MINE = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


@pytest.mark.parametrize(
    ("s3", "why"),
    [
        ({"objects": {"customer_key": "c2hvcnQ="}}, "is not a key of 32 bytes in base64"),
        ({"objects": {"customer_key": MINE, "encryption": "AES256"}}, "take encryption or customer_key out"),
        ({"objects": {"customer_key": MINE}, "endpoint_url": "http://minio:9000"}, "travel in the clear"),
        ({"objects": {"kms_key_id": "k"}}, "write encryption: aws:kms"),
        ({"objects": {"tags": {str(number): "" for number in range(11)}}}, "11 tags are too many"),
        ({"objects": {"tags": {"aws:x": "y"}}}, "does not begin with aws:"),
        ({"objects": {"storage_class": "DEEP_ARCHIVE"}}, "'GLACIER_IR'"),
        ({"objects": {"acl": "everybody"}}, "bucket-owner-full-control"),
        ({"accelerate": True}, "path_style: false"),
        ({"credentials": "instance", "profile": "lake"}, "credentials: profile"),
        ({"credentials": "anonymous", "role": {"arn": "arn:aws:iam::1:role/a"}}, "cannot assume a role"),
        ({"role": {"arn": "arn:aws:iam::1:role/a", "token_file": "t", "external_id": "e"}}, "no external id"),
    ],
)
def test_an_invalid_setting_of_objects_is_refused_with_the_remedy(s3: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        S3.model_validate(s3)
    assert "c2hvcnQ" not in str(refused.value)
    assert MINE not in str(refused.value)


def test_offset_tags_leave_room_for_seven_tags() -> None:
    tags = {f"tag {number}": "x" for number in range(8)}
    with pytest.raises(ValueError, match="8 tags are too many next to offset_tags: an object has at most 10"):
        S3.model_validate({"objects": {"tags": tags, "offset_tags": "tried"}})
