"""A server that answers a store from a script."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake_tests.kit.http import Response, ScriptedServer

SECRET = "wJalrXUtnFEMI/K7MDENG"
TOKEN = "IQoJb3JpZ2luX2VjEXAMPLE"


def answering(status: int, body: bytes, headers: Mapping[str, str] = {}) -> Response:
    """Answer with an ETag."""
    return Response(status, body, {"ETag": '"e"', **headers})


def ok(body: bytes = b"") -> Response:
    """Answer that all went well."""
    return answering(200, body)


def status(code: int, error: str = "", message: str = "") -> Response:
    """Answer with an error document, or without a body."""
    text = f"<Error><Code>{error}</Code><Message>{message}</Message></Error>" if error else ""
    return answering(code, f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode() if text else b"")


class Scripted(ScriptedServer):
    """The server, and stores that ask it."""

    def store(self, **settings: Any) -> S3Store:
        """Create a store that tries three times."""
        connection = S3Connection(
            endpoint_url=self.url,
            region="eu-north-1",
            access_key_id="AKIAEXAMPLE",
            secret_access_key=SECRET,
            session_token=TOKEN,
            max_attempts=3,
            backoff_ms=1,
            patience_s=0,
        )
        return S3Store(replace(connection, **settings), "lake")
