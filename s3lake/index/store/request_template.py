"""The common part of all requests of one operation to one bucket, found in the first one that boto3 sent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from io import BytesIO
from typing import Any
from urllib.parse import quote, urlsplit

from s3lake.index.store.signature import make_authorization

_UNSIGNED_BODY = "UNSIGNED-PAYLOAD"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/([^/]+/[^/]+)/aws4_request, "
    r"SignedHeaders=[^ ,]+, Signature=[0-9a-f]{64}"
)
_CHANGING = {"host", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token", "authorization"}
"""Headers that are different in each request."""
_LEFT_OUT = {"content-length", "expect", "amz-sdk-invocation-id", "amz-sdk-request"}
"""Headers that a template does not write: urllib3 adds the length, and the others do not change what is asked."""
_CONSTANT = re.compile(
    "user-agent|content-type|x-amz-(acl|storage-class|tagging|checksum-algorithm|request-payer|expected-bucket-owner)"
    "|x-amz-server-side-encryption(-.+)?"
)
"""Headers that are the same in each request. Another one could depend on the key or the body, as a checksum does."""


@dataclass(frozen=True)
class UploadRequest:
    """A request of an upload, without what its bucket and its credentials add to it.

    Attributes:
        operation: its name in the S3 API.
        method: the method of HTTP.
        key: the object's key.
        query: the parameters, percent-encoded, in the order of boto3.
        headers: the headers that only this request has, with their names in lower case.
        body: the bytes that are sent.
    """

    operation: str
    method: str
    key: str
    query: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class RequestTemplate:
    """The common part of all requests of one operation to one bucket.

    Attributes:
        origin: the scheme, host and port of the address.
        base: the path before the key.
        scope: the region and the service of the signature.
        signs_body: True if the signature has a digest of the body.
        headers: the headers that each request has, `host` among them; some are secret.
    """

    origin: str
    base: str
    scope: str
    signs_body: bool
    headers: Mapping[str, str] = field(repr=False)

    def write(self, request: UploadRequest, keys: Any, moment: str) -> tuple[str, dict[str, str]]:
        """Return a request's path with its query, and its headers.

        Args:
            request: the request without all that is in the template.
            keys: the frozen credentials of botocore.
            moment: the time of the signature, `YYYYMMDDTHHMMSSZ`.
        """
        target = f"{self.base}{_quote_key(request.key)}?{request.query}"
        headers = {
            **self.headers,
            **request.headers,
            "x-amz-date": moment,
            "x-amz-content-sha256": sha256(request.body).hexdigest() if self.signs_body else _UNSIGNED_BODY,
        }
        if keys.token:
            headers["x-amz-security-token"] = keys.token
        agent = headers.pop("user-agent", "")  # proxies may change it, so boto3 does not sign it either
        headers["authorization"] = make_authorization(
            keys.access_key, keys.secret_key, self.scope, request.method, target, headers
        )
        headers["user-agent"] = agent
        return target, headers


def learn_template(sent: Any, request: UploadRequest, keys: Any) -> RequestTemplate | None:
    """Return the template of a request that boto3 sent. Return None if the template would not write that request.

    Args:
        sent: the request of botocore.
        request: the same request as it is given to a template.
        keys: the frozen credentials of botocore.
    """
    url, key = urlsplit(sent.url), _quote_key(request.key)
    headers = {name.lower(): _to_text(value) for name, value in sent.headers.items()} | {"host": _find_host(sent.url)}
    authorization = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    constant = headers.keys() - _CHANGING - _LEFT_OUT - request.headers.keys()
    if authorization is None or not url.path.endswith(key) or not all(map(_CONSTANT.fullmatch, constant)):
        return None
    template = RequestTemplate(
        origin=f"{url.scheme}://{url.netloc}",
        base=url.path[: len(url.path) - len(key)],
        scope=authorization[1],
        signs_body=headers["x-amz-content-sha256"] != _UNSIGNED_BODY,
        headers={name: headers[name] for name in {*constant, "host"}},
    )
    target, written = template.write(request, keys, headers["x-amz-date"])
    expected = {name: value for name, value in headers.items() if name not in _LEFT_OUT}
    of_boto3 = (sent.method, sent.url, _read_body(sent.body), expected)
    return template if of_boto3 == (request.method, template.origin + target, request.body, written) else None


def _quote_key(key: str) -> str:
    return quote(key, safe="/~")


def _find_host(address: str) -> str:
    """Return the header `host`, which names a port only if it is not the scheme's own."""
    url = urlsplit(address)
    host = url.hostname or ""
    host = f"[{host}]" if ":" in host else host
    return host if url.port in (None, _DEFAULT_PORTS.get(url.scheme)) else f"{host}:{url.port}"


def _to_text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _read_body(body: Any) -> bytes | None:
    """Return the bytes of a body that boto3 sent. Return None if it writes others around them."""
    return body.getvalue() if isinstance(body, BytesIO) else body or b""
