"""The boto3 client of a connection: its credentials, proxy and time limits; one for each process."""

from __future__ import annotations

import base64
import functools
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from s3lake.errors import ConfigurationError
from s3lake.index.store import private_botocore
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.upload_client import UploadClient

_CREATE = ("PutObject", "CreateMultipartUpload")
_UPLOAD = (*_CREATE, "UploadPart")


class _Clients(NamedTuple):
    """The client of boto3, the client of uploads, and the session of botocore, which has the keys."""

    s3: Any
    uploads: Any
    session: Any


clients: dict[S3Connection, _Clients] = {}
"""The clients of this process."""
_making = threading.Lock()


def make_client(connection: S3Connection, attempts: int = 1, service: str = "s3", session: Any = None) -> Any:
    """Create a client of S3, or of another service of AWS, that tries each request `attempts` times.

    Every service gets the same credentials, role, proxy and certificates; only S3 gets the endpoint. `session` is from
    `_open_session`; None to open one for this client.
    """
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    options: dict[str, Any] = {"signature_version": UNSIGNED} if connection.unsigned else {}
    config = Config(
        **options,
        user_agent="s3lake",  # boto3 puts its own together for each request: an eighth of what a small one costs
        connect_timeout=connection.connect_timeout_s,
        read_timeout=connection.read_timeout_s,
        max_pool_connections=connection.max_pool_connections,
        retries={"total_max_attempts": attempts},
        s3={
            # `auto` puts the bucket into the host's name on AWS alone, and `virtual` there no otherwise.
            "addressing_style": "path" if connection.path_style else "virtual",
            "use_accelerate_endpoint": connection.accelerate,
        },
        proxies=_list_proxies(connection),
        # boto3's default adds a checksum to every upload, over https as a trailer in an encoding of the body that older
        # MinIO, Ceph and others refuse, and then Complete wants the checksums of all parts. Bodies are signed anyway.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    if connection.ca_file is not None and not Path(connection.ca_file).exists():
        raise ConfigurationError(
            f"s3.ca_file {connection.ca_file}: no such file where this runs; every worker needs it"
        )
    client = boto3.session.Session(botocore_session=session or _open_session(connection)).client(
        service,
        endpoint_url=connection.endpoint_url if service == "s3" else None,
        region_name=connection.region,
        use_ssl=connection.use_ssl,
        verify=connection.ca_file or connection.verify,
        config=config,
    )

    def add_parameters(params: Mapping[str, Any], model: Any, **_: Any) -> dict[str, Any]:
        """Add the parameters that an operation has, which the caller's own win over."""
        names = model.input_shape.members
        extra = _list_parameters(connection, model.name)
        return {**{name: value for name, value in extra.items() if name in names}, **params}

    client.meta.events.register("provide-client-params.s3", add_parameters)
    return client


def _open_session(connection: S3Connection) -> Any:
    """Open a session of botocore with the credentials of a connection."""
    import botocore.session

    # A session of its own: boto3's default session is one per process, and not safe with threads.
    core = botocore.session.Session(profile=connection.profile)
    private_botocore.speed_up(core)
    if connection.source is not None:
        private_botocore.keep_credential_sources(core, _METHODS[connection.source])
    if connection.access_key_id is not None:
        core.set_credentials(connection.access_key_id, connection.secret_access_key, connection.session_token)
    if connection.role_arn is not None:
        _assume(core, connection)
    return core


def _list_parameters(connection: S3Connection, operation: str) -> dict[str, Any]:
    """Return what the connection adds to requests of an operation: encryption, tags, checksums."""
    extra: dict[str, Any] = dict(connection.created_with) if operation in _CREATE else {}
    if connection.customer_key is not None:
        for prefix in ("SSECustomer", "CopySourceSSECustomer"):
            extra |= {f"{prefix}Algorithm": "AES256", f"{prefix}Key": base64.b64decode(connection.customer_key)}
    if connection.checksum is not None:
        extra |= {"ChecksumAlgorithm": connection.checksum} if operation in _UPLOAD else {"ChecksumMode": "ENABLED"}
    return extra


def _list_proxies(connection: S3Connection) -> dict[str, str] | None:
    """Return the proxies; None for the environment's."""
    address = connection.proxy
    return None if address is None else {"http": address, "https": address}


_METHODS = {
    "environment": ("env",),
    "profile": ("assume-role", "sso", "shared-credentials-file", "login", "custom-process", "config-file"),
    "web_identity": ("assume-role-with-web-identity",),
    "container": ("container-role",),
    "instance": ("iam-role",),
}
"""Source of credentials -> botocore's names of it."""


def _assume(core: Any, connection: S3Connection) -> None:
    """Let the session use the credentials of the role, and renew them before they expire."""
    from botocore.config import Config

    limits = Config(
        connect_timeout=connection.connect_timeout_s,
        read_timeout=connection.read_timeout_s,
        retries={"total_max_attempts": 1},  # a retry of the store is one of the token too
        proxies=_list_proxies(connection),
    )

    def create_token_client(service: str, config: Any = None, **keys: Any) -> Any:
        return core.create_client(
            service,
            region_name=connection.region,
            endpoint_url=connection.role_endpoint_url,
            verify=connection.ca_file if connection.role_endpoint_url else None,
            config=limits.merge(config or Config()),
            **keys,
        )

    settings = {
        "RoleSessionName": connection.role_session_name,
        "DurationSeconds": connection.role_duration_s,
        "ExternalId": connection.role_external_id,
    }
    extra = {name: value for name, value in settings.items() if value is not None}
    load_token = functools.partial(_read_token, connection.role_token_file) if connection.role_token_file else None
    private_botocore.assume_role(
        core, load_token, client_creator=create_token_client, role_arn=connection.role_arn, extra_args=extra
    )


def _read_token(path: str) -> str:
    """Read the web identity's token, which its issuer replaces regularly."""
    from botocore.exceptions import InvalidConfigError

    try:
        return Path(path).read_text("utf-8").strip()
    except OSError as error:
        message = f"s3.role.token_file {path} cannot be read: {error.strerror}"
        raise InvalidConfigError(error_msg=message) from None


def get_s3_client(connection: S3Connection) -> Any:
    """Return this process's client of `connection`. Threads may share a client, but not the making of one."""
    return _open_clients(connection).s3


def get_upload_client(connection: S3Connection) -> Any:
    """Return what makes the requests of uploads in this process: an `UploadClient`, or the client of boto3 itself."""
    return _open_clients(connection).uploads


def _open_clients(connection: S3Connection) -> _Clients:
    if connection not in clients:
        with _making:
            if connection not in clients:
                session = _open_session(connection)
                client = make_client(connection, session=session)
                connect = _find_connect(connection, session, client.meta.endpoint_url)
                uploads = client if connect is None else UploadClient(client, session.get_credentials(), connect)
                clients[connection] = _Clients(client, uploads, session)
    return clients[connection]


def _find_connect(connection: S3Connection, session: Any, endpoint: str) -> Callable[[str], Any] | None:
    """Return how to open connections with urllib3 as boto3's client does. Return None if boto3 makes all requests.

    boto3 makes them if there is a proxy, if they are not signed, or if the AWS configuration asks for TCP keep-alive.
    """
    import urllib3

    address = urlsplit(endpoint)
    proxies = _list_proxies(connection) or ({} if proxy_bypass(address.netloc) else getproxies())
    # Not every version of botocore has a variable for it: some read the profile only.
    keep_alive = session.get_config_variable("tcp_keepalive") or session.get_scoped_config().get("tcp_keepalive")
    if address.scheme in proxies or connection.unsigned or keep_alive:
        return None
    certificates = private_botocore.find_certificates(session, connection.ca_file or connection.verify)

    def connect(origin: str) -> Any:
        return urllib3.connection_from_url(
            origin,
            timeout=urllib3.Timeout(connect=connection.connect_timeout_s, read=connection.read_timeout_s),
            maxsize=connection.max_pool_connections,
            **(certificates if origin.startswith("https:") else {}),  # urllib3 refuses them for http
        )

    return connect


def find_access_keys(connection: S3Connection) -> Any:
    """Return the keys that this process signs with now; keys of a role expire. Return None if there are no keys."""
    credentials = _open_clients(connection).session.get_credentials()
    return credentials.get_frozen_credentials() if credentials else None


def _forget_clients() -> None:
    """Forget the parent's connections, and a lock that another thread may hold."""
    global clients, _making
    clients, _making = {}, threading.Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_forget_clients)
