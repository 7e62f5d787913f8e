"""Requests to the HTTP API of a destination, and its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from s3lake.errors import ConfigurationError, DestinationRefusedError, DestinationUnavailableError
from s3lake.text import masking

if TYPE_CHECKING:
    from s3lake.lake.forwarding.complete_hour import CompleteHour, Row

_TIMEOUT_S = (10, 120)  # to connect, and between two bytes
_JSON = "application/json"


class Api:
    """The HTTP API of a server.

    Args:
        product: the name of the server's product.
        url: the server's address, without a user.
        what: the index or table there, as messages call it.
        key: the name of its option, its scheme, and the secret if there is one; never printed.
        username: the user who logs in with the password, instead of a key; never printed.
        password: the user's password; never printed.
        ca_file: certificates to trust, if the machine does not trust the server's.

    Raises:
        ConfigurationError: the address or the login is not valid.
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
        """Send a request and return the server's answer. Return None if its status is one of `allowed`.

        Args:
            method: the HTTP method of the request.
            path: the path of the request, with its query.
            body: bytes are lines of JSON, anything else becomes one document.
            allowed: statuses that are not errors.

        Raises:
            DestinationUnavailableError: the server does not answer, or asks to try again.
            DestinationRefusedError: the status is another error.
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
            raise DestinationUnavailableError(f"{self.place}: {masking.mask_secrets(str(error), secrets)}") from None
        if response.status_code in allowed:
            return None
        # The text of the answer may quote a record.
        flaw = f"{self.place}: {method} {path.partition('?')[0]} was answered {response.status_code}"
        if response.status_code in (409, 429) or response.status_code >= 500:
            raise DestinationUnavailableError(flaw)
        if not response.ok:
            raise DestinationRefusedError(flaw)
        return response.json() if response.content else {}


def cut_bodies(
    hour: CompleteHour, encode_row: Callable[[Row], bytes], limit: int
) -> Iterator[tuple[bytes, list[Row], bool]]:
    """Yield bodies of lines of about `limit` bytes, their rows, and whether a body is the last one."""
    body = bytearray()
    rows: list[Row] = []
    for row in chain.from_iterable(hour.batches()):
        if len(body) >= limit:
            yield bytes(body), rows, False
            body, rows = bytearray(), []
        body += encode_row(row)
        rows.append(row)
    if rows:
        yield bytes(body), rows, True
