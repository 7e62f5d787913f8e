"""How to reach an S3 API, as plain values."""

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    from pydantic import SecretStr

    from s3lake.config import model
    from s3lake.config.model.s3 import Proxy

_SAME = ["endpoint_url", "region", "path_style", "max_pool_connections", "profile", "ca_file", "accelerate", "console"]
"""Settings of `s3` that a connection has under the same name."""


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
        profile: the profile of the AWS configuration files.
        source: the only place where boto3 looks for credentials, as in `s3.credentials`; None for its whole chain.
        unsigned: send no credentials at all.
        use_ssl: True for https if `endpoint_url` has no scheme.
        verify: check the server's certificate; None leaves it to boto3, which does.
        ca_file: certificates to trust in place of the machine's.
        max_attempts: the number of attempts at one request, the first included; 1 for never again.
        patience_s: how long to retry if the store refuses connections, with any number of attempts, and after which a
            store that takes requests and does not answer is not asked again.
        backoff_ms: the longest first pause between attempts; it doubles, and each pause is a random part of it.
        connect_timeout_s: the time to connect in one attempt, in seconds.
        read_timeout_s: the time between two bytes in one attempt, in seconds.
        role_arn: a role that these credentials assume, again before it ends; other `role_*` are AssumeRole's.
        role_token_file: the file of a web identity that assumes the role instead of the credentials.
        proxy: its address, with user and password if it needs them; never printed. None for the environment's.
        created_with: parameters of each object's creation: encryption, ACL, tags, storage class.
        offset_tags: whether the objects of a commit are tagged with the records they hold: None, tried or required.
        tags: the tags of `created_with`, which they have too.
        customer_key: the key that objects are encrypted with (SSE-C), in base64; never printed.
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
    proxy: str | None = field(default=None, repr=False)
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
        """The texts that are never printed."""
        secrets = [self.secret_access_key, self.session_token, self.role_external_id, self.customer_key]
        login = urlsplit(self.proxy or "")
        if login.password:
            user, password = unquote(login.username or ""), unquote(login.password)
            # As it is, in the address, and as requests have it.
            secrets += [password, login.password, base64.b64encode(f"{user}:{password}".encode()).decode()]
        return tuple(secret for secret in secrets if secret)

    @classmethod
    def from_settings(cls, s3: "model.S3") -> "S3Connection":
        """Build the connection that the configuration's `s3` part describes."""
        source, keys = (s3.credentials, None) if isinstance(s3.credentials, str) else (None, s3.credentials)
        role = s3.role
        return cls(
            **{name: getattr(s3, name) for name in _SAME},
            access_key_id=keys.access_key_id if keys else None,
            secret_access_key=_reveal(keys.secret_access_key) if keys else None,
            session_token=_reveal(keys.session_token) if keys else None,
            source=None if source in ("default", "anonymous") else source,
            unsigned=source == "anonymous",
            max_attempts=s3.retries.max_attempts,
            backoff_ms=s3.retries.backoff_ms,
            patience_s=s3.retries.patience,
            role_arn=role.arn if role else None,
            role_external_id=_reveal(role.external_id) if role else None,
            role_session_name=role.session_name if role else "s3lake",
            role_duration_s=round(role.duration) if role else None,
            role_endpoint_url=role.endpoint_url if role else None,
            role_token_file=role.token_file if role else None,
            proxy=_join_proxy(s3.proxy) if s3.proxy else None,
            created_with=s3.objects.request_parameters,
            offset_tags=s3.objects.offset_tags,
            tags=tuple(s3.objects.tags.items()),
            customer_key=_reveal(s3.objects.customer_key),
            checksum=s3.objects.checksum,
        )

    @classmethod
    def from_resource(cls, resource: Any) -> "S3Connection":
        """Build the connection of a `dagster_aws.s3.S3Resource`, or of an object with its documented fields."""

        def plain(name: str) -> Any:
            value = getattr(resource, name)
            # Dagster replaces its EnvVar by its value only when a run begins.
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


def _reveal(secret: "SecretStr | None") -> str | None:
    return secret.get_secret_value() if secret else None


def _join_proxy(proxy: "Proxy") -> str:
    """Return the proxy's address with its user and password, as clients take it."""
    if not proxy.user:
        return proxy.url
    scheme, _, host = proxy.url.partition("://")
    return f"{scheme}://{quote(proxy.user, safe='')}:{quote(_reveal(proxy.password) or '', safe='')}@{host}"
