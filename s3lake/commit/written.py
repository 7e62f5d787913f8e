"""How the files of a commit are written, as its manifest says it: the sink may be configured otherwise later.

A manifest of a commit that recorded nothing holds `{}`, so each member may be missing, and stays so.
"""

import msgspec
from msgspec import UNSET, UnsetType


class Envelope(msgspec.Struct, frozen=True):
    """Which parts of a record a row holds: see `s3lake.sink.Envelope`."""

    style: str
    fields: tuple[str, ...]
    value_encoding: str = "base64"
    bare: bool = False
    stream: str = ""
    topic: str = ""


class Sidecars(msgspec.Struct, frozen=True):
    """The files of keys and of headers.

    Attributes:
        keys: format of those of keys, None where there are none.
        headers: of those of headers.
        codecs: of each format.
        typed: whether keys that have a schema are of its type in tables, and no record stands round a key or headers
            in Avro; before, keys were texts or bytes, in records.
    """

    keys: str | None = None
    headers: str | None = None
    codecs: tuple[tuple[str, str], ...] | UnsetType = UNSET
    typed: bool | UnsetType = UNSET


class Written(msgspec.Struct, frozen=True):
    """What else than format, converter and columns a reader has to know of a commit's files.

    Attributes:
        key: the converter of keys.
        codec: of the format; a file's name told it before.
        header: whether a CSV file begins with the names of its columns.
        framing: what stands before the first record, between two, and after the last; None where an object is one
            record, or the format has a framing of its own.
        changed: whether values are no longer what Kafka has, after transforms or SQL.
        decimals: `base64` where decimals of schemas are that in JSON.
        floats: `shortest` where floats of Avro and Protobuf are so in JSON; before, they were the doubles next to them.
    """

    key: str | UnsetType = UNSET
    codec: str | UnsetType = UNSET
    header: bool | UnsetType = UNSET
    framing: tuple[str, str, str] | UnsetType | None = UNSET
    envelope: Envelope | UnsetType | None = UNSET
    sidecars: Sidecars | UnsetType = UNSET
    changed: bool | UnsetType = UNSET
    decimals: str | UnsetType = UNSET
    floats: str | UnsetType = UNSET

    @property
    def configured(self) -> "Written":
        """What of it a configuration decides, and not the version of s3lake that wrote the files."""
        return msgspec.structs.replace(self, floats=UNSET)
