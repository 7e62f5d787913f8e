"""A proxy in front of an S3 server that holds clients to S3's rules for their own keys."""

import base64
import hashlib
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from s3lake_tests.kit.proxy import Answer, ProxiedS3

_KEY = "x-amz-server-side-encryption-customer-key"


@dataclass(frozen=True)
class Asked:
    """A request: its operation in S3's words, path, headers in lower case."""

    operation: str
    path: str
    headers: dict[str, str]


@dataclass
class Refusal:
    """An answer of the proxy itself."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)

    def getheaders(self) -> list[tuple[str, str]]:
        return list(self.headers.items())

    def getheader(self, name: str) -> str | None:
        return self.headers.get(name)


class Watching(ProxiedS3):
    """Refuses an object that was created with a key of the client's own to requests without that key.

    The parts of an upload need the key too. Neither moto nor versitygw do that, so this is a fake of S3's
    rules as Amazon's manual states them, in front of a real server.
    """

    def __init__(self, upstream: str) -> None:
        super().__init__(upstream)
        self._keys: dict[str, str] = {}

    def passed_on(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[Answer, bytes]:
        address = urlsplit(request.path)
        query = parse_qs(address.query, keep_blank_values=True)
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(_operation(request.command, address.path, query), address.path, headers)
        place = query.get("uploadId", [address.path])[0]
        if why := self._broken(asked, place):
            return _refused(asked, why)
        answer, content = super().passed_on(request, body)
        if answer.status < 300:
            if asked.operation in ("GetObject", "HeadObject") and _KEY in headers and place not in self._keys:
                return _refused(asked, "The encryption parameters are not applicable to this object.")
            self._remember(asked, place, content)
            if _KEY in headers:
                answer = _Echoing(answer)
        return answer, content

    def _broken(self, asked: Asked, place: str) -> str:
        key, kept = asked.headers.get(_KEY), self._keys.get(place)
        if key is not None and asked.headers.get(f"{_KEY}-md5") != _md5(base64.b64decode(key)):
            return "The calculated MD5 hash of the encryption key did not match the hash that was provided."
        if asked.operation not in ("GetObject", "HeadObject", "UploadPart"):
            return ""
        if kept is not None and key is None:
            return "The object was stored using a form of Server Side Encryption. The correct parameters must be given."
        if kept is not None and key != kept:
            return "The provided encryption parameters did not match the ones used originally."
        return ""

    def _remember(self, asked: Asked, place: str, content: bytes) -> None:
        if asked.operation == "CreateMultipartUpload":
            upload = content.partition(b"<UploadId>")[2].partition(b"</UploadId>")[0].decode()
            self._keys[upload] = asked.headers.get(_KEY, "")
        elif asked.operation == "CompleteMultipartUpload":
            self._keys[asked.path] = self._keys.pop(place)
        elif asked.operation == "PutObject":
            self._keys[asked.path] = asked.headers.get(_KEY, "")
        self._keys = {name: key for name, key in self._keys.items() if key}


class _Echoing:
    """An answer that says, as S3 does, that the client's key was used."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.status = answer.status

    def getheaders(self) -> list[tuple[str, str]]:
        return [*self._answer.getheaders(), ("x-amz-server-side-encryption-customer-algorithm", "AES256")]

    def getheader(self, name: str) -> str | None:
        return self._answer.getheader(name)


def _refused(asked: Asked, why: str) -> tuple[Refusal, bytes]:
    error = f"<Error><Code>InvalidRequest</Code><Message>{why}</Message></Error>".encode()
    return Refusal(400), b"" if asked.operation == "HeadObject" else error


def _md5(key: bytes) -> str:
    return base64.b64encode(hashlib.md5(key).digest()).decode()


def _operation(method: str, path: str, query: dict[str, list[str]]) -> str:
    if method == "POST":
        return "CreateMultipartUpload" if "uploads" in query else "CompleteMultipartUpload"
    if method == "PUT" and "tagging" not in query:
        return "UploadPart" if "partNumber" in query else "PutObject"
    if method == "HEAD":
        return "HeadObject"
    return "GetObject" if method == "GET" and path.count("/") > 1 else "another"
