"""How S3 is reached, and what every object is created with."""

import base64
import binascii
import re
from typing import Annotated, Literal
from urllib.parse import urlencode, urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from s3lake.config.model.base import ConfigModel, Duration, RuleError, at_least, lasts_at_least, matches
from s3lake.text.masking import is_masked

_REGION = matches(
    r"(?![0-9]+$)(?!-)[A-Za-z0-9-]{1,63}(?<!-)", "a region is a part of a host name, for example eu-central-1"
)
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


class Credentials(ConfigModel):
    """Static keys.

    Attributes:
        access_key_id: the id of the key pair.
        secret_access_key: never printed.
        session_token: the token of temporary keys; never printed.
    """

    access_key_id: str = Field(examples=["${AWS_ACCESS_KEY_ID}"])
    secret_access_key: SecretStr = Field(examples=["${AWS_SECRET_ACCESS_KEY}"])
    session_token: SecretStr | None = None


class Role(ConfigModel):
    """A role that the credentials assume, and again before it expires.

    Attributes:
        arn: `arn:aws:iam::ACCOUNT:role/NAME`.
        external_id: the id that the role may require; never printed.
        session_name: its name in the account's log.
        duration: the time for which the role is requested, in seconds; the role itself may allow less.
        endpoint_url: the address of the token service, if it is not AWS's own.
        token_file: the file with the token of a web identity (Kubernetes, OIDC), which assumes the role instead of the
            credentials.
    """

    arn: Annotated[str, matches(r"arn:[\w-]+:.+", "an ARN, arn:aws:iam::ACCOUNT:role/NAME")] = Field(
        examples=["arn:aws:iam::123456789012:role/lake"]
    )
    external_id: SecretStr | None = None
    session_name: Annotated[str, matches(r"[\w+=,.@-]{2,64}", "2 to 64 of A-Z, a-z, 0-9 and '+=,.@-_'")] = "s3lake"
    duration: Annotated[Duration, lasts_at_least(900, 43_200)] = 3600.0
    endpoint_url: str | None = None
    token_file: str | None = None

    @model_validator(mode="after")
    def _check_proof(self) -> "Role":
        if self.token_file is not None and self.external_id is not None:
            raise RuleError("a web identity has no external id: take it out, or token_file", "external_id")
        return self


class Proxy(ConfigModel):
    """The proxy of requests to S3; without it the one of `HTTPS_PROXY`.

    Attributes:
        url: `http://HOST:PORT` or `https://HOST:PORT`.
        user: the user, if the proxy requires one.
        password: never printed.
    """

    url: str = Field(examples=["http://proxy:3128"])
    user: str | None = None
    password: SecretStr | None = None

    @field_validator("url")
    @classmethod
    def _check_url(cls, value: str) -> str:
        if not re.fullmatch(r"https?://[^/?#\s@]+/?", value):
            raise ValueError("write http://HOST:PORT or https://HOST:PORT; user and password are settings next to it")
        return value.rstrip("/")


class Retries(ConfigModel):
    """How often one S3 request is tried, and the first pause between tries (it doubles, with jitter).

    Attributes:
        max_attempts: the number of attempts of one request, the first included; 1 for never again.
        backoff_ms: the first pause; it doubles up to 20 s.
        patience: how long an unavailable store is tried again, in seconds.
    """

    max_attempts: Annotated[int, at_least(1)] = 5
    backoff_ms: Annotated[int, at_least(0)] = 50
    patience: Annotated[Duration, lasts_at_least(0)] = 90.0


class Objects(ConfigModel):
    """The settings of every object, data and index alike.

    Attributes:
        encryption: AES256 (SSE-S3) or aws:kms; None for the bucket's own.
        kms_key_id: the key of aws:kms: its id, ARN or alias; None for the account's own key.
        customer_key: SSE-C: a key of 32 bytes in base64 that S3 gets with each request and never keeps. If it is lost,
            the objects are lost. Never printed.
        acl: a canned one, for example bucket-owner-full-control.
        tags: the tags of each object, at most ten.
        offset_tags: tag each object of a commit with startOffset, endOffset and recordCount, as Confluent's connector
            does, before the commit is listed: tried (what the store refuses is logged) or required (the hour waits
            until it does). One request an object.
        storage_class: one that can be read without restoring; None for S3's own, STANDARD.
        checksum: what S3 checks and keeps for each upload; CRC32C and CRC64NVME need botocore[crt].
    """

    encryption: Literal["AES256", "aws:kms", "aws:kms:dsse"] | None = None
    kms_key_id: str | None = None
    customer_key: SecretStr | None = Field(default=None, examples=["${LAKE_KEY}"])
    acl: Annotated[str, matches("|".join(_CANNED), f"one of {', '.join(_CANNED)}")] | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    offset_tags: Literal["tried", "required"] | None = None
    storage_class: (
        Literal["STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "REDUCED_REDUNDANCY"]
        | None
    ) = None
    checksum: Literal["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"] | None = None

    @field_validator("customer_key")
    @classmethod
    def _check_customer_key(cls, value: SecretStr | None) -> SecretStr | None:
        # A configuration that is written again is validated with masked secrets.
        if value is None or is_masked(value.get_secret_value()):
            return value
        try:
            size = len(base64.b64decode(value.get_secret_value(), validate=True))
        except (binascii.Error, ValueError):
            size = 0
        if size != _KEY_BYTES:
            raise ValueError("is not a key of 32 bytes in base64; `openssl rand -base64 32` makes one")
        return value

    @field_validator("tags")
    @classmethod
    def _check_tags(cls, value: dict[str, str]) -> dict[str, str]:
        if len(value) > _TAGS:
            raise ValueError(f"{len(value)} tags are too many: an object has at most {_TAGS}")
        for name, text in value.items():
            fits = 0 < len(name) <= _TAG_NAME and len(text) <= _TAG_VALUE
            if not fits or name.startswith("aws:") or not _TAG.fullmatch(name + text):
                raise RuleError(
                    f"{name!r}: {text!r} is not a tag: a name of 1 to {_TAG_NAME} characters that does not begin with "
                    f"aws:, a value of at most {_TAG_VALUE}; letters, digits, blanks and '+-=._:/@'",
                    name,
                )
        return value

    @model_validator(mode="after")
    def _check_together(self) -> "Objects":
        if self.customer_key is not None and self.encryption is not None:
            message = "S3 encrypts with a key of its own or with yours: take encryption or customer_key out"
            raise RuleError(message, "encryption")
        if self.offset_tags is not None and len(self.tags) + _OFFSET_TAGS > _TAGS:
            message = f"{len(self.tags)} tags are too many next to offset_tags: an object has at most {_TAGS}"
            raise RuleError(message, "tags")
        if self.kms_key_id is not None and not (self.encryption or "").startswith("aws:kms"):
            raise RuleError("is of a key service: write encryption: aws:kms, or take it out", "kms_key_id")
        return self

    @property
    def request_parameters(self) -> tuple[tuple[str, str | bool], ...]:
        """The parameters of S3's requests that create an object; the customer's key goes with every request."""
        options = {
            "ServerSideEncryption": self.encryption,
            "SSEKMSKeyId": self.kms_key_id,
            "ACL": self.acl,
            "Tagging": urlencode(self.tags) or None,
            "StorageClass": self.storage_class,
        }
        return tuple((name, value) for name, value in options.items() if value is not None)


class S3(ConfigModel):
    """The S3 API of the bucket; the fields map onto `dagster_aws.s3.S3Resource`.

    Attributes:
        endpoint_url: `http://HOST:PORT` or `https://HOST`; None for AWS.
        region: the region of the buckets.
        path_style: bucket in the path instead of in the host's name.
        max_pool_connections: connections that one process keeps open for uploads, and as many for all other requests.
        credentials: a key pair, or where boto3 looks for one: `default` is its whole chain, the others are one place of
            it each; `anonymous` sends none.
        profile: the profile of the AWS configuration files, for `default` and `profile`.
        role: a role that the credentials assume.
        proxy: the proxy of requests.
        ca_file: certificates (PEM) of those who sign the store's, instead of the machine's; on every worker.
        objects: what every object is created with.
        accelerate: true for requests through the nearest edge of AWS (transfer acceleration); not with paths or an
            endpoint.
        retries: the rule by which each request is repeated.
        console: the page where people look at objects, for links in Dagster; None for AWS's own.
    """

    endpoint_url: str | None = None
    region: Annotated[str, _REGION] = "us-east-1"
    path_style: bool = True
    max_pool_connections: Annotated[int, at_least(1)] = 50
    credentials: (
        Literal["default", "environment", "profile", "web_identity", "container", "instance", "anonymous"] | Credentials
    ) = "default"
    profile: str | None = None
    role: Role | None = None
    proxy: Proxy | None = None
    ca_file: str | None = Field(default=None, examples=["/etc/ssl/lake-ca.pem"])
    objects: Objects = Field(default_factory=Objects)
    accelerate: bool = False
    retries: Retries = Field(default_factory=Retries)
    console: str | None = Field(default=None, examples=["https://minio.example:9001/browser/{bucket}/{prefix}"])

    @field_validator("console")
    @classmethod
    def _check_console(cls, value: str | None) -> str | None:
        if value is not None and (
            not re.fullmatch(r"https?://[^\s@]+", value)
            or not {"bucket", "prefix"} >= set(re.findall(r"\{([^{}]*)\}?", value))
        ):
            raise ValueError("write http(s)://HOST/PATH, without a user, with {bucket} and {prefix} in it")
        return value

    @field_validator("endpoint_url")
    @classmethod
    def _check_endpoint(cls, value: str | None) -> str | None:
        if value is not None and "@" in value:
            raise ValueError("a URL with user and password is printed in logs: give them in s3.credentials")
        if value is not None and not re.fullmatch(r"https?://[^/?#\s]+/?", value):
            raise ValueError(f"{value!r} is not an endpoint: write http://HOST:PORT or https://HOST, without a path")
        return value

    @model_validator(mode="after")
    def _check_together(self) -> "S3":
        if self.profile is not None and self.credentials not in ("default", "profile"):
            raise RuleError("is of the AWS configuration files: write credentials: profile, or take it out", "profile")
        if self.credentials == "anonymous" and self.role is not None:
            raise RuleError("anonymous requests cannot assume a role: give credentials, or take role out", "role")
        if self.accelerate and (self.endpoint_url is not None or self.path_style):
            message = "is AWS' own and needs path_style: false and no endpoint_url; or take it out"
            raise RuleError(message, "accelerate")
        url = urlsplit(self.endpoint_url or "")
        local = url.hostname in ("localhost", "127.0.0.1", "::1")
        if self.objects.customer_key is not None and url.scheme == "http" and not local:
            message = "the key would travel in the clear: write https:// in endpoint_url"
            raise RuleError(message, "objects", "customer_key")
        return self
