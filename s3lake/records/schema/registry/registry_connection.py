"""How a Schema Registry is reached, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Connection:
    """How to reach a registry, as plain values: they travel to the workers.

    Attributes:
        urls: the addresses of one registry; the first that answers is taken.
        timeout: seconds for connecting, and again for the whole answer to one request.
        patience_s: the seconds for which a request without an answer is repeated, at least three times; None: without
            end.
        longest_pause_s: the longest pause between two requests in seconds; each pause is about twice the one before.
        descriptors: a descriptor set of Protobuf instead of a registry, of which every value is the message `message`.
        avro: a schema instead of a registry: every value is a datum of it, with nothing before it.
        exact: whether times of Avro have columns of their own where Confluent's AvroData leaves numbers.
    """

    urls: tuple[str, ...]
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    timeout: float = 10.0
    patience_s: float | None = 0.0
    longest_pause_s: float = 60.0
    descriptors: bytes = field(default=b"", repr=False)
    message: str = ""
    avro: str = ""
    exact: bool = False
