"""A destination's HTTP API: requests, answers, and what a status means."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec

from s3lake.errors import ConfigurationError, DestinationRefusedError, DestinationUnavailableError
from s3lake.text import masking

_TIMEOUT_S = (10, 120)  # to connect, and between two bytes
_JSON = "application/json"


class Api:
    """Where requests go.

    Args:
        product: whose API it is.
        url: of the server, without a user.
        what: is asked for there, as messages call it.
        key: what its option is called, the scheme that it goes by, and what it is, where there is one; or
        username: with the password. Neither is ever printed.
        password: of the user.
        ca_file: who the server's certificate is signed by, where the machine does not know.

    Raises:
        ConfigurationError: the address cannot be, nor who asks.
    """

    def __init__(
        self,
        product: str,
        url: str,
        what: str,
        *,
        key: tuple[str, str, str | None],
        username: str | None = None,
        password: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        option, scheme, secret = key
        if (username is None) != (password is None) or (username and secret):
            raise ConfigurationError(f"{product}: give username and password, or {option}, or neither")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigurationError(f"url of {product}: write http(s)://HOST:PORT, and give the user as username")
        self.place = f"{product} {parts.netloc} {what}"
        self._url, self._ca_file = url.rstrip("/"), ca_file
        self._authorization = f"{scheme} {secret}" if secret else None
        self._user = (username, password) if username and password else None

    def ask(self, method: str, path: str, body: Any = None, *, allowed: tuple[int, ...] = ()) -> Any:
        """What the server answers; None where its status is one of `allowed`.

        Args:
            method: of the request.
            path: with its query.
            body: bytes are lines of JSON, anything else becomes one document.
            allowed: statuses that are answers too.

        Raises:
            DestinationUnavailableError: nobody answers, or asks to come again.
            DestinationRefusedError: any other status than these and success.
        """
        import requests

        lines = isinstance(body, bytes)
        headers = {"Content-Type": "application/x-ndjson" if lines else _JSON, "Accept": _JSON}
        if self._authorization:
            headers["Authorization"] = self._authorization
        try:
            response = requests.request(
                method,
                f"{self._url}/{path}",
                data=body if lines or body is None else msgspec.json.encode(body),
                headers=headers,
                auth=self._user,
                verify=self._ca_file or True,
                timeout=_TIMEOUT_S,
            )
        except requests.RequestException as error:
            secrets = [self._authorization or "", *(self._user or ())]
            raise DestinationUnavailableError(f"{self.place}: {masking.without(str(error), secrets)}") from None
        if response.status_code in allowed:
            return None
        # What it says beside that may repeat a record.
        flaw = f"{self.place}: {method} {path.partition('?')[0]} was answered {response.status_code}"
        if response.status_code in (409, 429) or response.status_code >= 500:
            raise DestinationUnavailableError(flaw)
        if not response.ok:
            raise DestinationRefusedError(flaw)
        return response.json() if response.content else {}
