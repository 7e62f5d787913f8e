"""What a small file costs: `python -m benchmarks.small_files --server versitygw --files 2000 --rounds 3`.

A file is three requests: CreateMultipartUpload, UploadPart and CompleteMultipartUpload. Each way makes them for the
same files from one thread, in turns; the server is another process. Prints a JSON line for each way and round: CPU and
real milliseconds of this process for a file.

boto3: a client as `boto3.client("s3")` makes it.
configured: the client of boto3 that s3lake configures, which makes all requests but those of uploads.
s3lake: the store that a landing uses.
floor: http.client with a signature made by hand, which repeats nothing and reads no error.
"""

import argparse
import http.client
import json
import os
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

from benchmarks.sink import Bucket, bucket
from s3lake.index.store.client import make_client
from s3lake.index.store.s3_connection import S3Connection
from s3lake.index.store.s3_store import S3Store
from s3lake.index.store.signature import make_authorization

Write = Callable[[str, bytes], None]
"""Writes an object by an upload of one part."""
COMMIT = {"s3lake-commit": "0123456789abcdef"}


def main() -> None:
    """Measure each way in turns."""
    options = parse_arguments()
    body = os.urandom(options.bytes)
    with bucket(options) as lake:
        connection = S3Connection(
            lake.endpoint_url,
            "us-east-1",
            access_key_id=lake.environment.get("AWS_ACCESS_KEY_ID", os.environ.get("AWS_ACCESS_KEY_ID")),
            secret_access_key=lake.environment.get("AWS_SECRET_ACCESS_KEY", os.environ.get("AWS_SECRET_ACCESS_KEY")),
        )
        ways = open_ways(connection, lake)
        for name, write in ways.items():  # clients, connections and templates are made before the clock starts
            write(f"{name}/first", body)
            write(f"{name}/second", body)
        for number in range(options.rounds):
            order = list(ways) if number % 2 == 0 else list(reversed(ways))
            for name in order:
                load = os.getloadavg()[0]
                cpu_ms, real_ms = measure(ways[name], f"{name}/{number}", body, options.files)
                print(
                    json.dumps(
                        {"way": name, "cpu_ms_per_file": cpu_ms, "real_ms_per_file": real_ms, "load": round(load, 1)}
                    ),
                    flush=True,
                )


def measure(write: Write, prefix: str, body: bytes, files: int) -> tuple[float, float]:
    """Write files. Return the CPU and the real milliseconds for each."""
    began, cpu_began = time.perf_counter(), time.process_time()
    for number in range(files):
        write(f"{prefix}/shard=s{number:05}/orders+0+{number:012}.json", body)
    cpu_s, real_s = time.process_time() - cpu_began, time.perf_counter() - began
    return round(cpu_s / files * 1000, 2), round(real_s / files * 1000, 2)


def open_ways(connection: S3Connection, lake: Bucket) -> dict[str, Write]:
    """Return each way to write an object."""
    import boto3

    plain = boto3.client(
        "s3",
        endpoint_url=connection.endpoint_url,
        region_name=connection.region,
        aws_access_key_id=connection.access_key_id,
        aws_secret_access_key=connection.secret_access_key,
    )
    return {
        "boto3": write_with_client(plain, lake.name),
        "configured": write_with_client(make_client(connection), lake.name),
        "s3lake": write_with_store(S3Store(connection, lake.name)),
        "floor": write_by_hand(connection, lake.name),
    }


def write_with_client(client: Any, name: str) -> Write:
    """Write objects with a client of boto3."""

    def write(key: str, body: bytes) -> None:
        place = {"Bucket": name, "Key": key}
        place["UploadId"] = client.create_multipart_upload(**place, Metadata=COMMIT)["UploadId"]
        etag = client.upload_part(**place, PartNumber=1, Body=body)["ETag"]
        parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
        client.complete_multipart_upload(**place, MultipartUpload=parts, IfNoneMatch="*")

    return write


def write_with_store(store: S3Store) -> Write:
    """Write objects as a task of s3lake does."""

    def write(key: str, body: bytes) -> None:
        upload = store.create_upload(key, COMMIT)
        answer = store.complete_upload(key, upload, [store.upload_part(key, upload, 1, body)])
        assert answer == "completed", answer

    return write


def write_by_hand(connection: S3Connection, name: str) -> Write:
    """Write objects with one connection of http.client."""
    address = urlsplit(connection.endpoint_url or "")
    server = http.client.HTTPConnection(address.hostname or "", address.port)
    keys = (connection.access_key_id or "", connection.secret_access_key or "")

    def ask(method: str, target: str, body: bytes, extra: dict[str, str]) -> tuple[http.client.HTTPResponse, bytes]:
        moment, digest = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()), sha256(body).hexdigest()
        headers = {"host": address.netloc, "x-amz-date": moment, "x-amz-content-sha256": digest, **extra}
        headers["authorization"] = make_authorization(*keys, f"{connection.region}/s3", method, target, headers)
        server.request(method, target, body, headers)
        response = server.getresponse()
        content = response.read()
        assert response.status == 200, (response.status, content)
        return response, content

    def write(key: str, body: bytes) -> None:
        path = quote(f"/{name}/{key}", safe="/~")
        extra = {f"x-amz-meta-{one}": value for one, value in COMMIT.items()}
        _, started = ask("POST", f"{path}?uploads", b"", extra)
        upload = f"uploadId={quote(ElementTree.fromstring(started).findtext('{*}UploadId') or '', safe='')}"
        part, _ = ask("PUT", f"{path}?{upload}&partNumber=1", body, {})
        listed = f"<Part><PartNumber>1</PartNumber><ETag>{part.headers['ETag']}</ETag></Part>"
        whole = f'<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{listed}</CompleteMultipartUpload>'
        ask("POST", f"{path}?{upload}", whole.encode(), {"if-none-match": "*"})

    return write


def parse_arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000, help="in each measurement (default: %(default)s)")
    parser.add_argument("--bytes", type=int, default=20_000, help="of a file (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is measured (default: %(default)s)")
    parser.add_argument("--server", choices=("moto", "versitygw", "minio"), default="versitygw")
    parser.add_argument("--endpoint", help="of a running S3, with the environment's keys, instead of a server")
    return parser.parse_args()


if __name__ == "__main__":
    main()
