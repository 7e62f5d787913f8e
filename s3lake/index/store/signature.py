"""AWS Signature Version 4 of a request, as the documentation of S3 describes it."""

import functools
import hmac
from collections.abc import Mapping
from hashlib import sha256


def make_authorization(
    access_key: str, secret_key: str, scope: str, method: str, target: str, headers: Mapping[str, str]
) -> str:
    """Return the header `Authorization` of a request.

    Args:
        access_key: the id of the key pair.
        secret_key: the secret of the key pair.
        scope: `REGION/SERVICE`.
        method: the method of HTTP.
        target: path and query as they are sent, percent-encoded.
        headers: the headers that are signed, with their names in lower case; among them are `host`, `x-amz-date` and
            `x-amz-content-sha256`.
    """
    path, _, query = target.partition("?")
    parameters = sorted(part.partition("=")[::2] for part in query.split("&") if part)
    names = sorted(headers)
    signed = ";".join(names)
    values = (f"{name}:{' '.join(headers[name].split())}" for name in names)
    lines = [method, path, "&".join(map("=".join, parameters)), *values, "", signed]
    request = "\n".join([*lines, headers["x-amz-content-sha256"]])
    moment = headers["x-amz-date"]
    place = f"{moment[:8]}/{scope}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{place}\n{sha256(request.encode()).hexdigest()}"
    signature = hmac.digest(_derive_key(secret_key, place), text.encode(), "sha256").hex()
    return f"AWS4-HMAC-SHA256 Credential={access_key}/{place}, SignedHeaders={signed}, Signature={signature}"


@functools.lru_cache(maxsize=16)
def _derive_key(secret_key: str, place: str) -> bytes:
    """Return the key of a day, which is the same for all its requests."""
    key = f"AWS4{secret_key}".encode()
    for step in place.split("/"):
        key = hmac.digest(key, step.encode(), "sha256")
    return key
