"""What a file is, as plain values that travel to Spark's workers."""

from __future__ import annotations

from dataclasses import dataclass

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

    @property
    def frame(self) -> tuple[bytes, bytes, bytes]:
        """The framing of a text file as bytes; nothing where each object is one record."""
        opening, between, closing = self.framing or _NO_FRAMING
        return opening.encode(), between.encode(), closing.encode()
