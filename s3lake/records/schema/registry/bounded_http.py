"""Requests to a registry, each within one bound of time and one of size, whatever the server does.

`requests` bounds the wait for the next byte: a server that sends one byte a second would hold a landing for days. Here
the seconds count for the whole answer. Redirects are not followed, so one request is one answer.
"""

from __future__ import annotations

import functools
import http.client
import io
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection

from s3lake.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3lake.records.schema.registry.registry_connection import Connection

MOST_BYTES = 16 * 1024 * 1024
"""How long an answer may be: sixteen times what Confluent's registry can store of a schema by default."""
_CHUNK = 64 * 1024
_SHOWN = 200


class Unavailable(Exception):
    """Another address, or a later attempt, may answer."""


class TooLarge(Exception):
    """The answer has more bytes than may be kept."""


class Answer(NamedTuple):
    """The answer to one request; `location` is where a redirect leads."""

    status: int
    body: bytes
    location: str = ""


def open_session(to: Connection) -> requests.Session:
    """Return a session that logs in as configured.

    Raises:
        ConfigurationError: a file of certificates does not exist.
    """
    session = requests.Session()
    for name in ("ca_file", "cert_file", "key_file"):
        path = getattr(to, name)
        if path is not None and not Path(path).exists():
            raise ConfigurationError(
                f"converter.registry.{name} {path}: no such file where this runs; every worker needs it"
            )
    session.headers["Accept"] = "application/vnd.schemaregistry.v1+json, application/json"
    if to.token is not None:
        session.auth = functools.partial(_with_token, to.token)
    elif to.user is not None:
        session.auth = (to.user, to.password or "")
    if to.cert_file is not None:
        session.cert = (to.cert_file, to.key_file) if to.key_file else to.cert_file
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter())
    return session


def get(session: requests.Session, to: Connection, url: str, address: str) -> Answer:
    """Return the answer of one address.

    Args:
        session: the session that `open_session` has made.
        to: its timeout is for connecting, and again for the whole answer.
        url: what users configured, which errors name.
        address: what is requested.

    Raises:
        Unavailable: there was no answer in time.
        TooLarge: the answer is larger than `MOST_BYTES`.
        ConfigurationError: a certificate is not valid.
    """
    try:
        # `verify` of a session gives way to the environment's, that of a request does not.
        with session.get(
            address, timeout=to.timeout, allow_redirects=False, verify=to.ca_file, stream=True
        ) as response:
            body = _read_bounded(response.iter_content(_CHUNK))
            return Answer(response.status_code, body, response.headers.get("Location", ""))
    except requests.exceptions.SSLError as error:
        if "CERTIFICATE_VERIFY_FAILED" not in str(error):
            raise Unavailable(f"TLS: {error}") from None
        raise ConfigurationError(
            f"Schema Registry at {url}: its certificate is not trusted; set converter.registry.ca_file to the "
            "certificates of those who signed it"
        ) from None
    except requests.exceptions.RequestException as error:
        raise Unavailable(_in_words(error, to.timeout)) from None
    except OSError as error:  # of an invalid certificate
        raise ConfigurationError(f"converter.registry: {error}") from None


def _read_bounded(chunks: Iterator[bytes]) -> bytes:
    kept = bytearray()
    for chunk in chunks:
        kept += chunk
        if len(kept) > MOST_BYTES:
            raise TooLarge
    return bytes(kept)


def _with_token(token: str, request: requests.PreparedRequest) -> requests.PreparedRequest:
    # As `auth` and not as a header, which a .netrc file of the machine would replace.
    request.headers["Authorization"] = f"Bearer {token}"
    return request


def _in_words(error: Exception, timeout: float) -> str:
    reason: Any = error.args[0] if error.args else error
    if isinstance(error, requests.exceptions.Timeout) or isinstance(reason, urllib3.exceptions.ReadTimeoutError):
        return f"no answer within {timeout:g} s"
    reason = getattr(reason, "reason", reason)  # urllib3 keeps what happened below several wrappers
    return f"{type(error).__name__}: {str(reason)[:_SHOWN]}"


# One deadline for a whole answer, where http.client reads it


class _UntilDeadline(io.RawIOBase):
    """The bytes that a socket receives within its timeout, counted from the beginning of the answer."""

    def __init__(self, sock: socket.socket, received: io.RawIOBase) -> None:
        timeout = sock.gettimeout()
        self._socket, self._received = sock, received
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("timed out")
            self._socket.settimeout(left)
        return self._received.readinto(buffer)

    def close(self) -> None:
        self._received.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = io.BufferedReader(_UntilDeadline(sock, self.fp.detach()))


class _Http(HTTPConnection):
    response_class = _Response


class _Https(HTTPSConnection):
    response_class = _Response


class _HttpPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _Https


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        _use_deadlines(self.poolmanager)

    def proxy_manager_for(self, *args: Any, **options: Any) -> Any:
        manager = super().proxy_manager_for(*args, **options)
        if isinstance(manager, urllib3.ProxyManager):  # that of SOCKS has connections of its own
            _use_deadlines(manager)
        return manager


def _use_deadlines(manager: urllib3.PoolManager) -> None:
    manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
