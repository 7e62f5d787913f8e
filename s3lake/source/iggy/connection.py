"""The one client of Iggy's server: its questions are awaited here, and answered or failed in time.

The client reconnects by itself for ever unless it is told otherwise, so every question has a deadline of its own.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import importlib.util
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from s3lake.errors import ConfigurationError, SourceUnavailableError

if TYPE_CHECKING:
    from apache_iggy import IggyClient

A = TypeVar("A")

_GONE = ("not found", "Resource with key")
_REFUSED = ("Unauthenticated", "Unauthorized", "Invalid credentials", "Invalid username", "Invalid password")
_TRIES = 2  # of a connection, in one question
_PAUSE_S = 0.5
_connecting = threading.Lock()


class Gone(Exception):
    """The stream, the topic or the partition is not there."""


@dataclass(frozen=True)
class Connection:
    """A server of Iggy: plain values that travel to workers.

    Attributes:
        address: `HOST:PORT`.
        transport: `tcp`, `quic`, `http` or `websocket`.
        username: of a user who may read.
        password: of that user.
        token: a personal access token instead of both; not over HTTP.
        tls: whether the connection is encrypted; QUIC always is.
        ca_file: who the server's certificate is signed by; None for the machine's authorities.
        domain: whom the certificate is of; None for the host of `address`.
        timeout_s: within which every question is answered.
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
        """The answer to a question; `what` it asks for, as messages call it.

        Raises:
            Gone: what is asked about is not there.
            SourceUnavailableError: the server did not answer in time.
            ConfigurationError: it refuses to, or nobody can ask.
        """
        key = (self.address, self.transport, self.username, self.password, self.token)

        async def answer() -> A:
            return await question(await _client(os.getpid(), *key, self.tls, self.ca_file, self.domain)())

        try:
            return asyncio.run(asyncio.wait_for(answer(), self.timeout_s))
        except (TimeoutError, asyncio.TimeoutError):
            raise self._unavailable(what, "no answer") from None
        except (RuntimeError, ValueError) as error:
            reason = str(error)
            if any(word in reason for word in _GONE):
                raise Gone(reason) from None
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


class _Connected:
    """A client that is connected when it is first asked for."""

    def __init__(self, make: Callable[[], IggyClient], login: tuple[str, str] | None) -> None:
        self._make, self._login = make, login
        self._client: IggyClient | None = None

    async def __call__(self) -> IggyClient:
        if self._client is None:
            client = self._make()
            await client.connect()
            if self._login is not None:
                await client.login_user(*self._login)
            self._client = client
        return self._client


@functools.lru_cache(maxsize=16)
def _client(
    pid: int,  # noqa: ARG001 - none survives a fork
    address: str,
    transport: str,
    username: str | None,
    password: str | None,
    token: str | None,
    tls: bool,
    ca_file: str | None,
    domain: str | None,
) -> _Connected:
    """One client per process and settings: a warm worker keeps its connection."""
    with _connecting:
        if importlib.util.find_spec("apache_iggy") is None:
            raise ConfigurationError("source.type iggy needs Iggy's client: pip install 's3lake[iggy]'")
        import apache_iggy as iggy

    login = (username, password) if username is not None and password is not None else None
    pause = datetime.timedelta(seconds=_PAUSE_S)

    def made() -> IggyClient:
        auto = iggy.AutoLogin.disabled()
        if token is not None:
            auto = iggy.AutoLogin.personal_access_token(token)
        elif login is not None:
            auto = iggy.AutoLogin.username_password(*login)
        host = address.rpartition(":")[0]
        match transport:
            case "http":
                return iggy.IggyClient(iggy.HttpConfig(api_url=f"{'https' if tls else 'http'}://{address}", retries=1))
            case "quic":
                again = iggy.QuicReconnectionConfig(max_retries=_TRIES, interval=pause)
                return iggy.IggyClient(
                    iggy.QuicConfig(
                        server_address=address,
                        server_name=domain or host,
                        auto_login=auto,
                        reconnection=again,
                        validate_certificate=tls,
                    )
                )
            case "websocket":
                return iggy.IggyClient(
                    iggy.WebSocketConfig(
                        server_address=address,
                        auto_login=auto,
                        reconnection=iggy.WebSocketReconnectionConfig(max_retries=_TRIES, interval=pause),
                        tls_enabled=tls,
                        tls_domain=domain or host,
                        tls_ca_file=ca_file,
                        tls_validate_certificate=tls,
                    )
                )
        return iggy.IggyClient(
            iggy.TcpConfig(
                server_address=address,
                auto_login=auto,
                reconnection=iggy.TcpReconnectionConfig(max_retries=_TRIES, interval=pause),
                tls_enabled=tls,
                tls_domain=domain or host,
                tls_ca_file=ca_file,
            )
        )

    return _Connected(made, login if transport == "http" else None)
