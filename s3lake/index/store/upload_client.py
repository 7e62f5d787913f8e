"""The three requests that every file needs, as boto3 makes them, for less than half of boto3's CPU.

boto3 makes the first request of each operation to a bucket. If this module would write the very same request, it makes
the next ones; if not, because of something that it does not know, boto3 goes on. boto3 also reads every answer that is
not a plain success: an error, a redirect to another region, an answer that is not complete.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from s3lake.index.store.request_template import RequestTemplate, UploadRequest, learn_template

_METHODS = {
    "CreateMultipartUpload": "create_multipart_upload",
    "UploadPart": "upload_part",
    "CompleteMultipartUpload": "complete_multipart_upload",
}
_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_LARGEST_BODY = 2 * 2**20
"""Bytes of a body that are sent at once. Before a larger one boto3 waits until the store agrees (100-continue)."""

Result = Mapping[str, Any]
"""An operation's result, as boto3 returns it."""


class UploadClient:
    """Makes the requests of uploads with the parameters, the results and the errors of boto3's client.

    Args:
        client: the client of boto3, which tries each request once.
        credentials: the credentials of botocore, which renew themselves.
        connect: opens urllib3's pool of connections to an address, as boto3's client has it.
    """

    def __init__(self, client: Any, credentials: Any, connect: Callable[[str], Any]) -> None:
        self._client, self._credentials, self._connect = client, credentials, connect
        self._pools: dict[str, Any] = {}
        self._templates: dict[tuple[str, str], RequestTemplate | None] = {}
        """By operation and bucket. None if boto3 makes all of these requests."""
        self._thread = threading.local()
        for operation in _METHODS:
            client.meta.events.register(f"before-send.s3.{operation}", self._record)

    def create_multipart_upload(self, *, Bucket: str, Key: str, Metadata: Mapping[str, str]) -> Result:
        """Start an upload. The result has its `UploadId`."""
        headers = {f"x-amz-meta-{name.lower()}": value for name, value in Metadata.items()}
        request = UploadRequest("CreateMultipartUpload", "POST", Key, "uploads", headers, b"")
        return self._make(request, _read_upload_id, {"Bucket": Bucket, "Key": Key, "Metadata": Metadata})

    def upload_part(self, *, Bucket: str, Key: str, UploadId: str, PartNumber: int, Body: bytes) -> Result:
        """Upload a part. The result has its `ETag`, and its checksum if it has one."""
        query = f"{_write_id(UploadId)}&partNumber={PartNumber}"
        request = UploadRequest("UploadPart", "PUT", Key, query, {}, Body)
        parameters = {"Bucket": Bucket, "Key": Key, "UploadId": UploadId, "PartNumber": PartNumber, "Body": Body}
        return self._make(request, _read_etag, parameters)

    def complete_multipart_upload(
        self, *, Bucket: str, Key: str, UploadId: str, MultipartUpload: Mapping[str, Any], **condition: str
    ) -> Result:
        """Complete an upload; the condition is `IfNoneMatch`, or there is none."""
        headers = {"if-none-match": condition["IfNoneMatch"]} if condition else {}
        body = _write_parts(MultipartUpload["Parts"])
        request = UploadRequest("CompleteMultipartUpload", "POST", Key, _write_id(UploadId), headers, body)
        parameters = {"Bucket": Bucket, "Key": Key, "UploadId": UploadId, "MultipartUpload": MultipartUpload}
        return self._make(request, _read_completion, {**parameters, **condition})

    def _make(
        self, request: UploadRequest, read: Callable[[Any], Result | None], parameters: Mapping[str, Any]
    ) -> Result:
        """Make a request; boto3 makes it if there is no template, and reads an answer that `read` does not."""
        place = (request.operation, str(parameters["Bucket"]))
        result: Result | None
        template, answer, is_small = self._templates.get(place), None, len(request.body) <= _LARGEST_BODY
        if template is not None and is_small:
            response = self._send(template, request)
            result = read(response)
            if result is not None:
                return result
            answer = _to_boto3(response, template.origin)
        with self._recording(answer) as exchange:
            result = getattr(self._client, _METHODS[request.operation])(**parameters)
        if exchange.sent is not None and is_small and (template is not None or place not in self._templates):
            keys = self._credentials.get_frozen_credentials()
            self._templates[place] = learn_template(exchange.sent, request, keys)
        return result

    def _send(self, template: RequestTemplate, request: UploadRequest) -> Any:
        """Send a request once. Return the answer, whatever it is; raise what boto3 raises if there is none."""
        from botocore import exceptions
        from urllib3 import exceptions as errors

        pool = self._pools.get(template.origin)
        if pool is None:
            pool = self._pools.setdefault(template.origin, self._connect(template.origin))
        keys = self._credentials.get_frozen_credentials()
        target, headers = template.write(request, keys, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
        address = template.origin + target
        try:
            return pool.urlopen(
                request.method,
                target,
                body=request.body,
                headers=headers,
                retries=False,
                redirect=False,
                assert_same_host=False,
                decode_content=False,
            )
        except errors.SSLError as error:
            raise exceptions.SSLError(endpoint_url=address, error=error) from None
        except errors.NewConnectionError as error:
            raise exceptions.EndpointConnectionError(endpoint_url=address, error=error) from None
        except errors.ConnectTimeoutError as error:
            raise exceptions.ConnectTimeoutError(endpoint_url=address, error=error) from None
        except errors.ReadTimeoutError as error:
            raise exceptions.ReadTimeoutError(endpoint_url=address, error=error) from None
        except errors.ProtocolError as error:
            raise exceptions.ConnectionClosedError(endpoint_url=address, error=error) from None

    @contextmanager
    def _recording(self, answer: Any) -> "Iterator[_Exchange]":
        """Record what boto3 sends in this thread. Its first request gets `answer` instead of being sent."""
        exchange = self._thread.exchange = _Exchange(answer)
        try:
            yield exchange
        finally:
            self._thread.exchange = None

    def _record(self, request: Any, **_: Any) -> Any:
        """Return the answer to a request that boto3 is about to send. Return None to let boto3 send it."""
        exchange: _Exchange | None = getattr(self._thread, "exchange", None)
        if exchange is None:
            return None
        answer, exchange.answer = exchange.answer, None
        if answer is None:
            exchange.sent = request
        return answer


@dataclass
class _Exchange:
    """An answer for boto3, if there is one, and the last request that boto3 sent."""

    answer: Any
    sent: Any = None


def _write_id(upload: str) -> str:
    return f"uploadId={quote(upload, safe='-_.~')}"


def _write_parts(parts: "list[Mapping[str, Any]]") -> bytes:
    """Return the document that names an upload's parts, as boto3 writes it."""
    lines = ("".join(f"<{name}>{escape(str(value))}</{name}>" for name, value in part.items()) for part in parts)
    listed = "".join(f"<Part>{line}</Part>" for line in lines)
    return f'<CompleteMultipartUpload xmlns="{_NAMESPACE}">{listed}</CompleteMultipartUpload>'.encode()


def _read_upload_id(response: Any) -> Result | None:
    root = _parse(response)
    upload = root.findtext("{*}UploadId") if root is not None else None
    return {"UploadId": upload} if upload else None


def _read_etag(response: Any) -> Result | None:
    """Return the result of an upload of a part; its answer has no body, unless the body is an error."""
    etag = response.headers.get("ETag")
    return {"ETag": etag} if response.status == 200 and etag and not response.data else None


def _read_completion(response: Any) -> Result | None:
    """Return an empty result if the upload was completed: an error can come inside a 200, too."""
    root = _parse(response)
    return {} if root is not None and root.tag.rpartition("}")[2] == "CompleteMultipartUploadResult" else None


def _parse(response: Any) -> ElementTree.Element | None:
    """Return the document of an answer. Return None if it is an error, or is not a document."""
    try:
        return ElementTree.fromstring(response.data) if response.status == 200 else None
    except ElementTree.ParseError:
        return None


def _to_boto3(response: Any, address: str) -> Any:
    """Return an answer that boto3 can read."""
    from botocore.awsrequest import AWSResponse
    from urllib3 import HTTPResponse

    body = HTTPResponse(BytesIO(response.data), preload_content=False)
    return AWSResponse(address, response.status, response.headers, body)
