"""The one client of Iggy's server: each question is answered in time, or fails.

The client reconnects by itself without end, so every question has a deadline of its own.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from s3lake.errors import ConfigurationError, SourceUnavailableError
from s3lake.plugins import require_extra

if TYPE_CHECKING:
    from apache_iggy import IggyClient

A = TypeVar("A")

_GONE = ("not found", "Resource with key")
_REFUSED = ("Unauthenticated", "Unauthorized", "Invalid credentials", "Invalid username", "Invalid password")
_TRIES = 2  # of a connection, in one question
PAUSE = datetime.timedelta(seconds=0.5)
"""How long the client waits before it connects again."""
_importing = threading.Lock()


class NotFoundError(Exception):
    """The stream, the topic or the partition is not there."""


@dataclass(frozen=True)
class IggyConnection:
    """A server of Iggy: plain values that travel to workers.

    Attributes:
        address: `HOST:PORT`.
        transport: `tcp`, `quic`, `http` or `websocket`.
        username: the name of a user who may read the topics.
        password: the user's password.
        token: a personal access token instead of both; not over HTTP.
        tls: whether the connection is encrypted; QUIC always is.
        ca_file: the file of the authorities that may sign the server's certificate; None for the machine's.
        domain: whom the certificate is of; None for the host of `address`.
        timeout_s: the time within which each request is answered, in seconds.
    """

    address: str
    transport: str = "tcp"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    tls: bool = False
    ca_file: str | None = None
    domain: str | None = None
    timeout_s: float = 5.0

    def __str__(self) -> str:
        return f"Iggy at {self.address}"

    def ask(self, what: str, question: Callable[[IggyClient], Awaitable[A]]) -> A:
        """Return the answer to a question about `what`, as messages call it.

        Raises:
            NotFoundError: there is no such stream, topic or partition.
            SourceUnavailableError: the server did not answer in time.
            ConfigurationError: it refuses to, or its client is not installed.
        """

        async def answer() -> A:
            # Clients are shared whatever the time limit of a question is; none survives a fork.
            key = os.getpid(), replace(self, timeout_s=0)
            if key not in _clients:
                _clients[key] = await _connect(self)
            return await question(_clients[key])

        try:
            return asyncio.run(asyncio.wait_for(answer(), self.timeout_s))
        except (TimeoutError, asyncio.TimeoutError):
            raise self._unavailable(what, "no answer") from None
        except (RuntimeError, ValueError) as error:
            reason = str(error)
            if any(word in reason for word in _GONE):
                raise NotFoundError(reason) from None
            if any(word in reason for word in _REFUSED):
                raise ConfigurationError(
                    f"{self} refuses to tell {what}: {reason}. To go on: correct source.username and source.password "
                    "or source.token, and allow this user to read the topic and poll its messages"
                ) from None
            raise self._unavailable(what, reason) from None

    def _unavailable(self, what: str, why: str) -> SourceUnavailableError:
        return SourceUnavailableError(
            f"{self} did not tell {what} within {self.timeout_s:g} s: {why}. Check that the server is up, that "
            f"source.address is that of its {self.transport} listener, and that the server and apache-iggy are of "
            "versions that know each other"
        )


_clients: dict[tuple[int, IggyConnection], IggyClient] = {}
"""The client of each process and connection: a warm worker keeps its own."""


async def _connect(connection: IggyConnection) -> IggyClient:
    with _importing, require_extra("iggy", "source.type iggy"):
        import apache_iggy as iggy

    login = None
    if connection.username is not None and connection.password is not None:
        login = (connection.username, connection.password)
    auto_login = iggy.AutoLogin.disabled()
    if connection.token is not None:
        auto_login = iggy.AutoLogin.personal_access_token(connection.token)
    elif login is not None:
        auto_login = iggy.AutoLogin.username_password(*login)
    address, tls = connection.address, connection.tls
    retries: dict[str, Any] = {"max_retries": _TRIES, "interval": PAUSE}
    domain = connection.domain or address.rpartition(":")[0]
    shared: dict[str, Any] = {"server_address": address, "auto_login": auto_login}
    secured: dict[str, Any] = {"tls_enabled": tls, "tls_domain": domain, "tls_ca_file": connection.ca_file}
    config: Any
    retry: Any
    match connection.transport:
        case "http":
            config = iggy.HttpConfig(api_url=f"{'https' if tls else 'http'}://{address}", retries=1)
        case "quic":
            retry = iggy.QuicReconnectionConfig(**retries)
            config = iggy.QuicConfig(**shared, server_name=domain, reconnection=retry, validate_certificate=tls)
        case "websocket":
            retry = iggy.WebSocketReconnectionConfig(**retries)
            config = iggy.WebSocketConfig(**shared, **secured, reconnection=retry, tls_validate_certificate=tls)
        case _:
            config = iggy.TcpConfig(**shared, **secured, reconnection=iggy.TcpReconnectionConfig(**retries))
    client = iggy.IggyClient(config)
    await client.connect()
    if connection.transport == "http" and login is not None:
        await client.login_user(*login)
    return client
