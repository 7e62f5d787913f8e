"""How the files of a commit are written, as its manifest says it: the sink may be configured otherwise later."""

import msgspec


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
        keys: format of those of keys, None if there are none.
        headers: format of those of headers.
        codecs: of each format.
    """

    keys: str | None = None
    headers: str | None = None
    codecs: tuple[tuple[str, str], ...] = ()


class Written(msgspec.Struct, frozen=True):
    """What else than format, converter and columns a reader has to know of a commit's files.

    Attributes:
        key: the converter of keys.
        codec: of the format.
        header: True if a CSV file begins with the names of its columns.
        framing: what is before the first record, between two, and after the last; None if an object is one record, or
            the format has a framing of its own.
        transformed: of `key`, `value` and `headers` those that transforms or SQL may have changed.
        transforms: digest of the transforms and the SQL, as configured; empty if there are none.
        decimals: `base64` if decimals of schemas are that in JSON, else `number`.
    """

    key: str = "string"
    codec: str = "none"
    header: bool = True
    framing: tuple[str, str, str] | None = ("", "\n", "\n")
    envelope: Envelope | None = None
    sidecars: Sidecars = Sidecars()
    transformed: tuple[str, ...] = ()
    transforms: str = ""
    decimals: str = "number"

    @property
    def form(self) -> "Written":
        """How files are written, whatever transforms had done before."""
        return msgspec.structs.replace(self, transformed=(), transforms="")
