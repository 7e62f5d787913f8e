"""What a configuration says of Kafka, S3 and Spark."""

import re
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_serializer, field_validator, model_validator

from s3lake.sink.objects import Objects
from s3lake.sink.part import Misfit, Part, at_least, matching
from s3lake.text.masking import masked, shown
from s3lake.text.quantities import duration_text, seconds_of


class Kafka(Part):
    """Where the topics are. `properties` are librdkafka's; what only the Java client knows is translated or refused.

    Attributes:
        bootstrap_servers: `HOST:PORT`, several with commas.
        properties: of librdkafka, by its names: security, timeouts, sizes.
    """

    bootstrap_servers: str = Field(examples=["localhost:9092"])
    properties: dict[str, str] = Field(default_factory=dict, repr=False)

    _hide = field_serializer("properties")(masked)

    @field_validator("bootstrap_servers")
    @classmethod
    def _some_server(cls, value: str) -> str:
        for server in value.split(","):
            if not re.fullmatch(r"\s*(\w+://)?([^\s:/,]+|\[[0-9A-Fa-f:.]+\]):\d+\s*", server):
                raise ValueError(f"{value!r} is no list of servers: write HOST:PORT, several with commas")
        return value

    @field_validator("properties")
    @classmethod
    def _ours(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if name in ("bootstrap.servers", "group.id", "isolation.level", "enable.auto.commit"):
                remedy = "use kafka.bootstrap_servers" if name == "bootstrap.servers" else "take it out"
                raise Misfit(f"{name} is set by s3lake: {remedy}", name)
        return value


class Credentials(Part):
    """Static keys.

    Attributes:
        access_key_id: of the key pair.
        secret_access_key: never printed.
        session_token: of temporary keys; never printed.
    """

    access_key_id: str = Field(examples=["${AWS_ACCESS_KEY_ID}"])
    secret_access_key: SecretStr = Field(examples=["${AWS_SECRET_ACCESS_KEY}"])
    session_token: SecretStr | None = None


class Role(Part):
    """A role that the credentials assume, and again before it ends.

    Attributes:
        arn: `arn:aws:iam::ACCOUNT:role/NAME`.
        external_id: where the role asks for one; never printed.
        session_name: what the account's log calls it.
        duration: how long it is asked for at once, in seconds; the role itself may allow less.
        endpoint_url: of the token service, where it is not AWS's own.
        token_file: of a web identity (Kubernetes, OIDC), which assumes the role instead of the credentials.
    """

    arn: str = Field(examples=["arn:aws:iam::123456789012:role/lake"])
    external_id: SecretStr | None = None
    session_name: str = "s3lake"
    duration: float = 3600.0
    endpoint_url: str | None = None
    token_file: str | None = None

    _seconds = field_validator("duration", mode="before")(seconds_of)
    _shown = field_serializer("duration")(duration_text)
    _name = field_validator("arn")(matching(r"arn:[\w-]+:.+", "an ARN, arn:aws:iam::ACCOUNT:role/NAME"))
    _session = field_validator("session_name")(matching(r"[\w+=,.@-]{2,64}", "2 to 64 of A-Z, a-z, 0-9 and '+=,.@-_'"))

    @field_validator("duration")
    @classmethod
    def _allowed(cls, value: float) -> float:
        if not 900 <= value <= 43_200:
            raise ValueError(f"{duration_text(value)} is out of range: 15m to 12h")
        return value

    @model_validator(mode="after")
    def _one_proof(self) -> "Role":
        if self.token_file is not None and self.external_id is not None:
            raise Misfit("a web identity has no external id: take it out, or token_file", "external_id")
        return self


class Proxy(Part):
    """What requests to S3 go through; without it what `HTTPS_PROXY` says.

    Attributes:
        url: `http://HOST:PORT` or `https://HOST:PORT`.
        user: where the proxy asks for one.
        password: never printed.
    """

    url: str = Field(examples=["http://proxy:3128"])
    user: str | None = None
    password: SecretStr | None = None

    @field_validator("url")
    @classmethod
    def _address(cls, value: str) -> str:
        if not re.fullmatch(r"https?://[^/?#\s@]+/?", value):
            raise ValueError("write http://HOST:PORT or https://HOST:PORT; user and password stand beside it")
        return value.rstrip("/")


class Retries(Part):
    """How often one S3 request is tried, and the first pause between tries (it doubles, with jitter).

    Attributes:
        max_attempts: of one request, the first included; 1 for never again.
        backoff_ms: the first pause; it doubles up to 20 s.
        patience: how long a store that cannot be reached is asked again, in seconds.
    """

    max_attempts: int = 5
    backoff_ms: int = 50
    patience: float = 90.0

    _seconds = field_validator("patience", mode="before")(seconds_of)
    _shown = field_serializer("patience")(duration_text)

    _some = field_validator("max_attempts")(at_least(1))
    _forward = field_validator("backoff_ms", "patience")(at_least(0))


class S3(Part):
    """The S3 API that the bucket lives behind; the fields map onto `dagster_aws.s3.S3Resource`.

    Attributes:
        endpoint_url: `http://HOST:PORT` or `https://HOST`; None for AWS.
        region: of the buckets.
        path_style: bucket in the path instead of in the host's name.
        max_pool_connections: connections that one process keeps open.
        credentials: a key pair, or where boto3 looks for one: `default` is its whole chain, the others are one place of
            it each; `anonymous` sends none.
        profile: of the AWS configuration files, for `default` and `profile`.
        role: a role that the credentials assume.
        proxy: what requests go through.
        ca_file: certificates (PEM) of those who sign the store's, in place of the machine's; on every worker.
        objects: what every object is created with.
        requester_pays: who asks pays, as buckets of others may want it.
        accelerate: through the nearest edge of AWS (transfer acceleration); not with paths or an endpoint.
        retries: of each request.
        console: the page where people look at objects, for links in Dagster; None for AWS's own.
    """

    endpoint_url: str | None = None
    region: str = "us-east-1"
    path_style: bool = True
    max_pool_connections: int = 50
    credentials: (
        Literal["default", "environment", "profile", "web_identity", "container", "instance", "anonymous"] | Credentials
    ) = "default"
    profile: str | None = None
    role: Role | None = None
    proxy: Proxy | None = None
    ca_file: str | None = Field(default=None, examples=["/etc/ssl/lake-ca.pem"])
    objects: Objects = Field(default_factory=Objects)
    requester_pays: bool = False
    accelerate: bool = False
    retries: Retries = Field(default_factory=Retries)
    console: str | None = Field(default=None, examples=["https://minio.example:9001/browser/{bucket}/{prefix}"])

    _some = field_validator("max_pool_connections")(at_least(1))

    @field_validator("console")
    @classmethod
    def _page(cls, value: str | None) -> str | None:
        if value is not None and (
            not re.fullmatch(r"https?://[^\s@]+", value)
            or not {"bucket", "prefix"} >= set(re.findall(r"\{([^{}]*)\}?", value))
        ):
            raise ValueError("write http(s)://HOST/PATH, without a user, with {bucket} and {prefix} in it")
        return value

    @field_validator("endpoint_url")
    @classmethod
    def _address(cls, value: str | None) -> str | None:
        if value is not None and "@" in value:
            raise ValueError("a URL with user and password is printed in logs: give them in s3.credentials")
        if value is not None and not re.fullmatch(r"https?://[^/?#\s]+/?", value):
            raise ValueError(f"{value!r} is no endpoint: write http://HOST:PORT or https://HOST, without a path")
        return value

    @model_validator(mode="after")
    def _agree(self) -> "S3":
        if self.profile is not None and self.credentials not in ("default", "profile"):
            raise Misfit("is of the AWS configuration files: write credentials: profile, or take it out", "profile")
        if self.credentials == "anonymous" and self.role is not None:
            raise Misfit("nobody in particular cannot assume a role: give credentials, or take role out", "role")
        if self.accelerate and (self.endpoint_url is not None or self.path_style):
            raise Misfit("is AWS' own and needs path_style: false and no endpoint_url; or take it out", "accelerate")
        if self.objects.customer_key is not None and _is_in_the_clear(self.endpoint_url):
            raise Misfit("the key would travel in the clear: write https:// in endpoint_url", "objects", "customer_key")
        return self


def _is_in_the_clear(endpoint: str | None) -> bool:
    url = urlsplit(endpoint or "")
    return url.scheme == "http" and url.hostname not in ("localhost", "127.0.0.1", "::1")


class Spark(Part):
    """The Spark session. `conf` overrides every setting that s3lake makes itself.

    Attributes:
        master: `local[n]`, a cluster's master, or `sc://HOST:PORT` for a server of warm sessions.
        driver_memory: the JVM's heap, for example 1g.
        conf: any setting of Spark's; it wins over s3lake's own.
    """

    master: str = Field(default="local[*]", repr=False)  # of Spark Connect it may hold a token
    driver_memory: str = "1g"
    conf: dict[str, str] = Field(default_factory=dict, repr=False)

    _memory = field_validator("driver_memory")(matching(r"[1-9]\d*[kmgKMG]", "a number with k, m or g, for example 1g"))
    _hide = field_serializer("conf")(masked)
    _hide_token = field_serializer("master")(lambda value: shown("master", value))
