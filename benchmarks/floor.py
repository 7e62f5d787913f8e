"""The cheapest loop that anybody could write: a topic into files of S3, by librdkafka from C, and polars.

`sink.py --floor` measures it in turns with ours: the same records in files of the same size, format and codec, whose
rows are compared. It is a mark, no product: it checks no value, knows no hours and no commit, and a crash leaves what
was written. It signs its requests itself, over one connection without TLS, and sends each file with one request.
"""

import ctypes
import hashlib
import hmac
import http.client
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

_PREFIX = 5
"""Bytes before an Avro datum: zero, and the id of its schema."""
_CONSUMER, _EARLIEST = 1, -2
_SYNC = bytes(range(16))
_SETTINGS = {
    "group.id": "floor",
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "enable.partition.eof": "true",
    "check.crcs": "true",
    "fetch.message.max.bytes": str(4 << 20),
    "queued.min.messages": "50000",
    "queued.max.messages.kbytes": "32768",
}


class Buffer(ctypes.Structure):
    """`buffer` of floor.c: what was read of a topic-partition."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("size", "capacity", "rows", "first_offset", "ended")),
    ]

    @property
    def values(self) -> memoryview:
        """The bytes, which are not copied."""
        return memoryview((ctypes.c_char * self.size).from_address(self.data)).cast("B")


class Topic:
    """A topic from its beginning, read by librdkafka."""

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        from confluent_kafka import cimpl

        self._kafka = ctypes.CDLL(cimpl.__file__, ctypes.RTLD_GLOBAL)
        self._fill = _compile().fill
        self._fill.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_size_t, ctypes.c_int]
        self.buffers = (Buffer * partitions)()
        call, text, pointer = self._call, ctypes.c_char_p, ctypes.c_void_p
        settings, problem = call("conf_new", pointer), ctypes.create_string_buffer(512)
        for name, value in {"bootstrap.servers": servers, **_SETTINGS}.items():
            given = (pointer(settings), text(name.encode()), text(value.encode()), problem, ctypes.c_size_t(512))
            if call("conf_set", ctypes.c_int, *given):
                raise SystemExit(problem.value.decode())
        self._handle = pointer(call("new", pointer, _CONSUMER, pointer(settings), problem, ctypes.c_size_t(512)))
        call("poll_set_consumer", ctypes.c_int, self._handle)
        self._queue = pointer(call("queue_get_consumer", pointer, self._handle))
        listed = pointer(call("topic_partition_list_new", pointer, partitions))
        for number in range(partitions):
            place = (listed, text(topic.encode()), ctypes.c_int32(number))
            call("topic_partition_list_add", pointer, *place)
            call("topic_partition_list_set_offset", ctypes.c_int, *place, ctypes.c_int64(_EARLIEST))
        call("assign", ctypes.c_int, self._handle, listed)

    def _call(self, name: str, returns: Any, *given: Any) -> Any:
        function = getattr(self._kafka, f"rd_kafka_{name}")
        function.restype = returns
        return function(*given)

    def read(self, most: int, skip: int, newline: bool) -> Iterator[tuple[int, Buffer]]:
        """Yield topic-partitions whose buffer has `most` rows or is the last; each is empty when the next is read."""
        open_ones = len(self.buffers)
        while open_ones:
            number = self._fill(self._queue, self.buffers, most, skip, newline)
            if number == -1:
                continue
            if number < 0:
                raise SystemExit("Kafka or the memory failed")
            buffer = self.buffers[number]
            if buffer.rows:
                yield number, buffer
                buffer.rows = buffer.size = 0
            open_ones -= buffer.ended
            buffer.ended = 0

    def close(self) -> None:
        """End the consumer, and give the memory back."""
        self._call("consumer_close", ctypes.c_int, self._handle)
        self._call("queue_destroy", None, self._queue)
        self._call("destroy", None, self._handle)
        free = ctypes.CDLL(None).free
        for buffer in self.buffers:
            free(ctypes.c_void_p(buffer.data))


def _compile() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory(prefix="s3lake-floor-") as scratch:
        library = Path(scratch) / "libfloor.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-std=c99", "-O2", "-fPIC", "-shared", "-o", library, source], check=True)
        return ctypes.CDLL(str(library))


class Bucket:
    """A bucket over one connection, with requests that are signed by hand (AWS Signature Version 4)."""

    def __init__(self, endpoint: str, bucket: str) -> None:
        place = urllib.parse.urlsplit(endpoint)
        self._host, self._bucket = place.netloc, bucket
        self._connection = http.client.HTTPConnection(place.netloc)
        self._connection.connect()
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def put(self, key: str, body: memoryview) -> None:
        """Write an object."""
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        path, digest = urllib.parse.quote(f"/{self._bucket}/{key}"), hashlib.sha256(body).hexdigest()
        signed = {"host": self._host, "x-amz-content-sha256": digest, "x-amz-date": now}
        names, lines = ";".join(signed), "".join(f"{name}:{value}\n" for name, value in signed.items())
        request = f"PUT\n{path}\n\n{lines}\n{names}\n{digest}"
        scope = f"{now[:8]}/us-east-1/s3/aws4_request"
        secret = f"AWS4{os.environ['AWS_SECRET_ACCESS_KEY']}".encode()
        for part in scope.split("/"):
            secret = hmac.digest(secret, part.encode(), "sha256")
        to_sign = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        signature = hmac.new(secret, to_sign.encode(), "sha256").hexdigest()
        credential = f"{os.environ['AWS_ACCESS_KEY_ID']}/{scope}"
        by = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"
        headers = {**signed, "Authorization": by, "Content-Length": str(len(body))}
        self._connection.request("PUT", path, body, headers)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{answer.status} {said!r}")


Encode = Callable[[Buffer], memoryview]


def encoder(value: str, schema: Mapping[str, Any], type: str, codec: str = "", level: int = 4) -> Encode:
    """Return how a file is made of the values of a buffer."""
    if type in ("json", "text"):
        if codec in ("", "none"):
            return lambda buffer: buffer.values
        from deflate import gzip_compress

        return lambda buffer: memoryview(gzip_compress(buffer.values, level))
    import polars

    if type != "parquet" or codec != "snappy":
        raise SystemExit(f"the floor writes JSON, text, and Parquet with Snappy, not {type} with {codec}")

    def from_json(buffer: Buffer) -> memoryview:
        # Times stay texts, as in our files.
        read = polars.read_ndjson(buffer.values.tobytes(), schema_overrides={"ts": polars.String})
        return _parquet(read)

    def from_avro(buffer: Buffer) -> memoryview:
        block = (header, _long(buffer.rows), _long(buffer.size), buffer.values, _SYNC)
        return _parquet(polars.read_avro(io.BytesIO(b"".join(block))))

    described = [*map(_text, (b"avro.schema", json.dumps(schema).encode(), b"avro.codec", b"null"))]
    header = b"".join((b"Obj\x01", _long(2), *described, b"\0", _SYNC))
    return from_avro if value == "avro" else from_json


def _parquet(frame: Any) -> memoryview:
    out = io.BytesIO()
    frame.write_parquet(out, compression="snappy")
    return out.getbuffer()


def _long(number: int) -> bytes:
    """A count as Avro writes it."""
    encoded, left = bytearray(), number << 1
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*encoded, left))


def _text(data: bytes) -> bytes:
    return _long(len(data)) + data


def land(plan: Mapping[str, Any], sink: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Write all records of a topic, and yield records and bytes of each file."""
    config = plan["config"]
    bucket = Bucket(config["s3"]["endpoint_url"], sink["bucket"])
    value = sink["converter"]["value"]
    encode = encoder(value, plan["schema"], **sink["format"])
    topic = Topic(config["kafka"]["bootstrap_servers"], plan["topic"], plan["partitions"])
    skip, newline = (_PREFIX, False) if value == "avro" else (0, True)
    for number, buffer in topic.read(sink["flush"]["count"], skip, newline):
        body = encode(buffer)
        bucket.put(f"{sink['prefix']}/{plan['topic']}/{number}/{buffer.first_offset:020d}", body)
        yield buffer.rows, len(body)
    topic.close()


def main(plan: Mapping[str, Any]) -> None:
    """Land `plan["topic"]` through every sink of `plan["config"]`, as `land.py` does."""
    told(did="start")
    for sink in plan["config"]["sinks"]:
        began = time.perf_counter()
        files = list(land(plan, sink))
        told(
            did=sink["name"],
            seconds=time.perf_counter() - began,
            rows=sum(records for records, _ in files),
            files=len(files),
            bytes=sum(size for _, size in files),
            s3_requests={"PutObject": len(files)},
            requests_per_file=1.0,
        )


def told(**what: Any) -> None:
    """Say what was done, as `land.py` does, and wait."""
    print(json.dumps(what), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
