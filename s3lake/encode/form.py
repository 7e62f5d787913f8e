"""What a file is, as plain values that travel to Spark's workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from s3lake.sink import Format

_NO_FRAMING = ("", "", "")


@dataclass(frozen=True)
class FileFormat:
    """The format of one kind of file.

    Attributes:
        header: whether a CSV file begins with the names of its columns.
        framing: what stands before the first record of a text file, between two, and after the last.
    """

    type: str
    codec: str
    level: int | None = None
    header: bool = True
    framing: tuple[str, str, str] | None = None

    @classmethod
    def of(cls, format: Format) -> FileFormat:
        """The form of a sink's data files."""
        frame = format.frame
        framing = (frame.opening, frame.between, frame.closing) if frame else None
        return cls(format.type, format.codec, format.level, format.header, framing)

    @classmethod
    def sidecar(cls, type: str) -> FileFormat:
        """The form of a sink's sidecars of that type, in its default codec; `bytes` are lines, one for each record."""
        from s3lake.sink import Format, Framing

        return cls.of(Format.model_validate({"type": type, "framing": Framing() if type == "bytes" else None}))

    @property
    def frame(self) -> tuple[bytes, bytes, bytes]:
        """The framing of a text file as bytes; nothing where each object is one record."""
        opening, between, closing = self.framing or _NO_FRAMING
        return opening.encode(), between.encode(), closing.encode()
