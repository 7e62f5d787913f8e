"""What objects are created with, data and index alike: encryption, ACL, tags, storage class, checksums."""

import base64
import binascii
import json
import re
from typing import Literal
from urllib.parse import urlencode

from pydantic import Field, SecretStr, field_validator, model_validator

from s3lake.sink.part import Misfit, Part, matching
from s3lake.text.masking import is_masked

_KEY_BYTES = 32
_TAGS, _OFFSET_TAGS, _TAG_NAME, _TAG_VALUE = 10, 3, 128, 256
_TAG = re.compile(r"[\w +\-=.:/@]*")
_CANNED = (
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "aws-exec-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
)


class Objects(Part):
    """What every object is created with, data and index alike.

    Attributes:
        encryption: AES256 (SSE-S3) or aws:kms; None for the bucket's own.
        kms_key_id: of aws:kms: id, ARN or alias; None for the account's own key.
        kms_context: of aws:kms: names and values that the key's policy may ask for; they stand in AWS' log.
        bucket_key: of aws:kms: let S3 ask the key service once for many objects; None for the bucket's own.
        customer_key: SSE-C: a key of 32 bytes in base64 that S3 is given with each request and never keeps. Who loses
            it has lost the objects. Never printed.
        acl: a canned one, for example bucket-owner-full-control.
        tags: of each object, at most ten.
        offset_tags: tag each object of a commit with startOffset, endOffset and recordCount, as Confluent's connector
            does, before the commit is listed: tried (what the store refuses is logged) or required (the hour waits
            until it does). One request an object.
        storage_class: one that can be read at once; None for S3's own, STANDARD.
        checksum: what S3 checks and keeps for each upload; CRC32C and CRC64NVME take botocore[crt].
    """

    encryption: Literal["AES256", "aws:kms", "aws:kms:dsse"] | None = None
    kms_key_id: str | None = None
    kms_context: dict[str, str] = Field(default_factory=dict)
    bucket_key: bool | None = None
    customer_key: SecretStr | None = Field(default=None, examples=["${LAKE_KEY}"])
    acl: str | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    offset_tags: Literal["tried", "required"] | None = None
    storage_class: (
        Literal["STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "REDUCED_REDUNDANCY"]
        | None
    ) = None
    checksum: Literal["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"] | None = None

    _canned = field_validator("acl")(
        lambda value: value if value is None else matching("|".join(_CANNED), f"one of {', '.join(_CANNED)}")(value)
    )

    @field_validator("customer_key")
    @classmethod
    def _of_256_bits(cls, value: SecretStr | None) -> SecretStr | None:
        # Who writes a configuration anew validates what it prints of it.
        if value is None or is_masked(value.get_secret_value()):
            return value
        try:
            size = len(base64.b64decode(value.get_secret_value(), validate=True))
        except (binascii.Error, ValueError):
            size = 0
        if size != _KEY_BYTES:
            raise ValueError("is no key of 32 bytes in base64; `openssl rand -base64 32` makes one")
        return value

    @field_validator("tags")
    @classmethod
    def _as_s3_takes_them(cls, value: dict[str, str]) -> dict[str, str]:
        if len(value) > _TAGS:
            raise ValueError(f"{len(value)} tags are too many: an object has at most {_TAGS}")
        for name, text in value.items():
            fits = 0 < len(name) <= _TAG_NAME and len(text) <= _TAG_VALUE
            if not fits or name.startswith("aws:") or not _TAG.fullmatch(name + text):
                raise Misfit(
                    f"{name!r}: {text!r} is no tag: a name of 1 to {_TAG_NAME} characters, not beginning with aws:, a "
                    f"value of at most {_TAG_VALUE}; letters, digits, blanks and '+-=._:/@'",
                    name,
                )
        return value

    @model_validator(mode="after")
    def _agree(self) -> "Objects":
        if self.customer_key is not None and self.encryption is not None:
            message = "S3 encrypts with a key of its own or with yours: take encryption or customer_key out"
            raise Misfit(message, "encryption")
        if self.offset_tags is not None and len(self.tags) + _OFFSET_TAGS > _TAGS:
            message = f"{len(self.tags)} tags are too many beside offset_tags: an object has at most {_TAGS}"
            raise Misfit(message, "tags")
        for name in ("kms_key_id", "kms_context", "bucket_key"):
            if getattr(self, name) not in (None, {}) and not (self.encryption or "").startswith("aws:kms"):
                raise Misfit("is of a key service: write encryption: aws:kms, or take it out", name)
        return self

    @property
    def created_with(self) -> tuple[tuple[str, str | bool], ...]:
        """The parameters of S3's requests that create an object; the customer's key goes with every request."""
        context = json.dumps(self.kms_context, separators=(",", ":"), sort_keys=True) if self.kms_context else None
        options = {
            "ServerSideEncryption": self.encryption,
            "SSEKMSKeyId": self.kms_key_id,
            "SSEKMSEncryptionContext": context and base64.b64encode(context.encode()).decode(),
            "BucketKeyEnabled": self.bucket_key,
            "ACL": self.acl,
            "Tagging": urlencode(self.tags) or None,
            "StorageClass": self.storage_class,
        }
        return tuple((name, value) for name, value in options.items() if value is not None)
