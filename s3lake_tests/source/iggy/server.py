"""A server that speaks Iggy's HTTP API, for the real client: as much of it as reading and sending messages needs.

Iggy's own server is in no package registry, only in an image and in its source. What this one does is what the client
of the same project expects of the API, and its documentation of offsets, expiry and purging.
"""

import base64
import json
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from s3lake_tests.kit.http import Request, Response, as_json, serve

USER, PASSWORD = "iggy", "hunter2-iggy"


@dataclass
class IggyMessage:
    """A message as it lies in a partition; `headers` as the API has them."""

    payload: bytes
    timestamp: int
    id: int
    headers: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Partition:
    """A partition, of which the messages below `low` expired."""

    low: int = 0
    messages: list[IggyMessage] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The next offset."""
        return self.low + len(self.messages)


@dataclass
class Topic:
    """A topic with its partitions by id."""

    id: int
    created_at: int
    partitions: dict[int, Partition]


class IggyServer:
    """Streams of topics, behind an address; `first` is the id of a topic's first partition."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.streams: dict[str, dict[str, Topic]] = {}
        self.requests: list[str] = []
        self.short_timestamps = False
        self.address = ""
        self._created = 1_700_000_000_000_000

    def topic(self, stream: str, topic: str, partitions: int = 1) -> None:
        """Create a topic, and its stream where it is new."""
        self._created += 1
        topics = self.streams.setdefault(stream, {})
        numbers = range(self.first, self.first + partitions)
        topics[topic] = Topic(len(topics) + 1, self._created, {number: Partition() for number in numbers})

    def append(
        self,
        stream: str,
        topic: str,
        payloads: list[bytes],
        stamp_us: int | list[int],
        partition: int | None = None,
        headers: list[dict[str, Any]] | None = None,
        first_id: int = 1,
    ) -> None:
        """Messages that the server took at these times."""
        log = self.streams[stream][topic].partitions[self.first if partition is None else partition]
        for number, payload in enumerate(payloads):
            stamp = stamp_us if isinstance(stamp_us, int) else stamp_us[number]
            log.messages.append(IggyMessage(payload, stamp, first_id + number, headers or []))

    def expire(self, stream: str, topic: str, before: int, partition: int | None = None) -> None:
        """Drop the messages before an offset, as the expiry of a segment does."""
        log = self.streams[stream][topic].partitions[self.first if partition is None else partition]
        log.messages, log.low = log.messages[before - log.low :], before

    def purge(self, stream: str, topic: str) -> None:
        """Drop all messages; offsets begin at 0 again."""
        for log in self.streams[stream][topic].partitions.values():
            log.messages, log.low = [], 0


def header(name: str, header_type: str, value: bytes) -> dict[str, Any]:
    """A user header as the API has it."""
    return {"key": _field("string", name.encode()), "value": _field(header_type, value)}


def _field(header_type: str, value: bytes) -> dict[str, str]:
    return {"kind": header_type, "value": base64.b64encode(value).decode()}


@contextmanager
def serving(first: int = 0) -> Iterator[IggyServer]:
    """Serve on a free port of 127.0.0.1 until the end of the block."""
    server = IggyServer(first)
    with serve(_Api(server).answer) as url:
        server.address = url.removeprefix("http://")
        yield server


class _Api:
    def __init__(self, iggy: IggyServer) -> None:
        self.iggy = iggy

    def answer(self, request: Request) -> Response:
        if request.method == "POST":
            return self._post(request.steps, json.loads(request.body))
        self.iggy.requests.append(urlsplit(request.target).path)
        if request.steps == ["ping"]:
            return as_json("pong")
        if request.headers.get("authorization") != "Bearer token":
            return as_json("not logged in", 401)
        try:
            return as_json(self._told(request.steps, request.query))
        except KeyError as error:
            return as_json(f"{error}", 404)

    def _post(self, steps: list[str], body: Any) -> Response:
        if steps == ["users", "login"]:
            if (body["username"], body["password"]) != (USER, PASSWORD):
                return as_json("wrong", 401)
            return as_json({"user_id": 1, "access_token": {"token": "token", "expiry": 2**40}})
        _, stream, _, topic, _ = steps
        partition = struct.unpack("<I", base64.b64decode(body["partitioning"]["value"]))[0]
        for one in body["messages"]:
            payload, now = base64.b64decode(one["payload"]), time.time_ns() // 1000
            self.iggy.append(stream, topic, [payload], now, partition, one.get("user_headers"), one["id"])
        return as_json({"confirmations": []}, 201)

    def _told(self, steps: list[str], query: dict[str, str]) -> Any:
        match steps:
            case ["streams"]:
                return [self._stream(number, name) for number, name in enumerate(self.iggy.streams)]
            case ["streams", stream, "topics"]:
                name = list(self.iggy.streams)[int(stream)] if stream.isdigit() else stream
                return [self._topic(name, topic) for topic in self.iggy.streams[name]]
            case ["streams", stream, "topics", topic]:
                return self._topic(stream, topic)
            case ["streams", stream, "topics", topic, "messages"]:
                return self._polled(self.iggy.streams[stream][topic], query)
        raise KeyError(steps)

    def _stream(self, number: int, name: str) -> dict[str, Any]:
        counts = {"size": 0, "messages_count": 0, "topics_count": len(self.iggy.streams[name])}
        return {"id": number, "created_at": 1, "name": name, **counts}

    def _topic(self, stream: str, name: str) -> dict[str, Any]:
        topic = self.iggy.streams[stream][name]
        partitions = [
            {
                "id": number,
                "created_at": topic.created_at,
                "segments_count": 1,
                "current_offset": max(0, log.end - 1),
                "size": 0,
                "messages_count": len(log.messages),
            }
            for number, log in topic.partitions.items()
        ]
        return {
            "id": topic.id,
            "created_at": topic.created_at,
            "name": name,
            "size": 0,
            "message_expiry": 2**64 - 1,
            "compression_algorithm": "none",
            "max_topic_size": 2**64 - 1,
            "messages_count": sum(len(log.messages) for log in topic.partitions.values()),
            "partitions_count": len(partitions),
            "partitions": partitions,
        }

    def _polled(self, topic: Topic, query: dict[str, str]) -> dict[str, Any]:
        number, value, count = int(query["partition_id"]), int(query["value"]), int(query["count"])
        log = topic.partitions[number]
        match query["kind"]:
            case "offset":
                first = max(value, log.low)
            case "timestamp":
                stamps = [message.timestamp for message in log.messages]
                first = log.low + next((at for at, stamp in enumerate(stamps) if stamp >= value), len(stamps))
                first -= self.iggy.short_timestamps and first > log.low
            case "first":
                first = log.low
            case _:
                first = max(log.low, log.end - count)
        messages = log.messages[first - log.low : first - log.low + count]
        return {
            "partition_id": number,
            "current_offset": max(0, log.end - 1),
            "count": len(messages),
            "messages": [_shown(offset, message) for offset, message in enumerate(messages, first)],
        }


def _shown(offset: int, message: IggyMessage) -> dict[str, Any]:
    unused = dict.fromkeys(("checksum", "user_headers_length", "reserved"), 0)
    stamps = dict.fromkeys(("timestamp", "origin_timestamp"), message.timestamp)
    header = {**unused, **stamps, "id": message.id, "offset": offset, "payload_length": len(message.payload)}
    payload = base64.b64encode(message.payload).decode()
    return {"header": header, "payload": payload, "user_headers": message.headers or None}
