"""Encoders: payloads in, a file's bytes out as they come. One small file per format, the same three verbs.

To add a format: write its encoder, name it in `encoder`, and give it an extension and its codecs in `sink.Format`.
"""

from collections.abc import Callable
from typing import Any, Protocol

from s3lake.encode.lines import LinesEncoder
from s3lake.encode.parquet import Disk, ParquetEncoder

Out = Callable[[bytes], None]


class Encoder(Protocol):
    """One file being written.

    Attributes:
        pending: bytes held back, before compression.
    """

    pending: int

    @property
    def memory(self) -> int:
        """Bytes of memory that `relieve` gives back."""
        ...

    def write(self, payload: Any) -> None:
        """Take one payload; bytes may come out now or later."""
        ...

    def drain(self) -> None:
        """Let out what is held back, as far as the format allows; the file goes on."""
        ...

    def relieve(self) -> None:
        """Give memory back, to `out` or to the disk."""
        ...

    def close(self) -> None:
        """Let out the rest."""
        ...


def encoder(format: str, codec: str, level: int | None, out: Out, disk: Disk, *, chunk: int) -> Encoder:
    """The encoder of a new file; it holds back at most about `chunk` bytes."""
    if format == "parquet":
        return ParquetEncoder(out, codec, level, disk, row_group_bytes=chunk)
    return LinesEncoder(out, codec, level)
