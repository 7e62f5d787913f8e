"""How to reach an S3 API, as plain values."""

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import SecretStr

    from s3lake import sink


@dataclass(frozen=True)
class S3Connection:
    """How to reach an S3 API: plain values only, because Spark pickles them into its Python workers.

    Attributes:
        endpoint_url: None for AWS.
        region: None for boto3's own choice.
        path_style: bucket in the path instead of in the host name.
        max_pool_connections: connections one process keeps open.
        access_key_id: None, with the secret, for boto3's own chain: environment, profile, instance role.
        secret_access_key: never printed.
        session_token: never printed.
        profile: of the AWS configuration files.
        source: where alone boto3 looks for credentials, by S3's names of the model; None for its whole chain.
        unsigned: send no credentials at all.
        use_ssl: https where `endpoint_url` does not say.
        verify: check the server's certificate; None leaves it to boto3, which does.
        ca_file: certificates to trust in place of the machine's.
        max_attempts: of one request, the first included; 1 for never again.
        patience_s: how long a store that refuses connections is asked again, however often that is, and after which one
            that takes requests and says nothing is asked no more.
        backoff_ms: the longest first pause between attempts; it doubles, and each pause is a random part of it.
        connect_timeout_s: of one attempt.
        read_timeout_s: of one attempt, between two bytes.
        role_arn: a role that these credentials assume, again before it ends; the `role_*` beside it are AssumeRole's.
        role_token_file: of a web identity that assumes the role instead of the credentials.
        proxy_url: None for the environment's, `HTTPS_PROXY`.
        created_with: what each object is created with beside its bytes: encryption, ACL, tags, storage class.
        offset_tags: whether the objects of a commit are tagged with the records they hold: None, tried or required.
        tags: that they have beside, of `created_with`.
        customer_key: in base64, what objects are encrypted with (SSE-C); never printed.
        checksum: what S3 checks each upload with, and keeps.
        accelerate: go to the nearest edge of AWS.
        console: the page where people look at objects, with `{bucket}` and `{prefix}`; None for AWS's own.
    """

    endpoint_url: str | None = None
    region: str | None = None
    path_style: bool = True
    max_pool_connections: int = 50
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    profile: str | None = None
    source: str | None = None
    unsigned: bool = False
    use_ssl: bool = True
    verify: bool | None = None
    ca_file: str | None = None
    max_attempts: int = 5
    backoff_ms: int = 50
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 45.0
    patience_s: float = 90.0
    role_arn: str | None = None
    role_external_id: str | None = field(default=None, repr=False)
    role_session_name: str = "s3lake"
    role_duration_s: int | None = None
    role_endpoint_url: str | None = None
    role_token_file: str | None = None
    proxy_url: str | None = None
    proxy_user: str | None = None
    proxy_password: str | None = field(default=None, repr=False)
    created_with: tuple[tuple[str, str | bool], ...] = ()
    offset_tags: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    customer_key: str | None = field(default=None, repr=False)
    checksum: str | None = None
    accelerate: bool = False
    console: str | None = None

    def __post_init__(self) -> None:
        # The endpoint is named in every error.
        if self.endpoint_url and "@" in self.endpoint_url:
            raise ConfigurationError(
                "s3.endpoint_url may hold neither user name nor password: write it as https://host:port, and give the "
                "keys as s3.credentials."
            )

    @property
    def secrets(self) -> tuple[str, ...]:
        """What is never printed."""
        login = f"{self.proxy_user}:{self.proxy_password}".encode()
        secrets = (
            self.secret_access_key,
            self.session_token,
            self.proxy_password,
            quote(self.proxy_password or "", safe=""),  # as it stands in an address
            base64.b64encode(login).decode() if self.proxy_password else None,  # as requests say it
            self.role_external_id,
            self.customer_key,
        )
        return tuple(secret for secret in secrets if secret)

    @property
    def proxy(self) -> str | None:
        """The proxy's address with its user and password, as clients take it; None for the environment's."""
        if self.proxy_url is None or not self.proxy_user:
            return self.proxy_url
        scheme, _, host = self.proxy_url.partition("://")
        return f"{scheme}://{quote(self.proxy_user, safe='')}:{quote(self.proxy_password or '', safe='')}@{host}"

    @classmethod
    def of(cls, s3: "sink.S3") -> "S3Connection":
        """The connection that the configuration's `s3` part describes."""
        source, keys = (s3.credentials, None) if isinstance(s3.credentials, str) else (None, s3.credentials)
        role, proxy = s3.role, s3.proxy
        return cls(
            endpoint_url=s3.endpoint_url,
            region=s3.region,
            path_style=s3.path_style,
            max_pool_connections=s3.max_pool_connections,
            access_key_id=keys.access_key_id if keys else None,
            secret_access_key=_plain(keys.secret_access_key) if keys else None,
            session_token=_plain(keys.session_token) if keys else None,
            profile=s3.profile,
            source=None if source in ("default", "anonymous") else source,
            unsigned=source == "anonymous",
            max_attempts=s3.retries.max_attempts,
            backoff_ms=s3.retries.backoff_ms,
            patience_s=s3.retries.patience,
            role_arn=role.arn if role else None,
            role_external_id=_plain(role.external_id) if role else None,
            role_session_name=role.session_name if role else "s3lake",
            role_duration_s=round(role.duration) if role else None,
            role_endpoint_url=role.endpoint_url if role else None,
            role_token_file=role.token_file if role else None,
            ca_file=s3.ca_file,
            proxy_url=proxy.url if proxy else None,
            proxy_user=proxy.user if proxy else None,
            proxy_password=_plain(proxy.password) if proxy else None,
            created_with=s3.objects.request_parameters,
            offset_tags=s3.objects.offset_tags,
            tags=tuple(s3.objects.tags.items()),
            customer_key=_plain(s3.objects.customer_key),
            checksum=s3.objects.checksum,
            accelerate=s3.accelerate,
            console=s3.console,
        )

    @classmethod
    def from_resource(cls, resource: Any) -> "S3Connection":
        """The connection of a `dagster_aws.s3.S3Resource`, or of anything with the documented fields of that class."""

        def plain(name: str) -> Any:
            value = getattr(resource, name)
            # Dagster replaces its EnvVar by what it stands for only when a run begins.
            return value.get_value() if hasattr(value, "get_value") else value

        return cls(
            endpoint_url=plain("endpoint_url"),
            region=plain("region_name"),
            access_key_id=plain("aws_access_key_id"),
            secret_access_key=plain("aws_secret_access_key"),
            session_token=plain("aws_session_token"),
            profile=plain("profile_name"),
            unsigned=plain("use_unsigned_session"),
            use_ssl=plain("use_ssl"),
            verify=plain("verify"),
            max_attempts=plain("max_attempts"),
        )


def _plain(secret: "SecretStr | None") -> str | None:
    return secret.get_secret_value() if secret else None
