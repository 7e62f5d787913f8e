"""Encoders: payloads in, a file's bytes out as they come. One small file per format, the same three verbs.

To add a format: write its encoder, and describe the format in `formats.py`.
"""

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from s3lake.records.encode.formats import FORMATS, FileFormat

Out = Callable[[bytes | memoryview], None]

__all__ = ["Disk", "Encoder", "FileFormat", "Out", "encoder", "prepare_rows"]


class Disk(Protocol):
    """The place of rows for which memory has no room."""

    def add(self, data: bytes) -> tuple[int, int]:
        """Keep `data`: where it is."""
        ...

    def take(self, extent: tuple[int, int]) -> bytes:
        """Bytes kept before."""
        ...


class Encoder(Protocol):
    """One file being written."""

    @property
    def pending(self) -> int:
        """Bytes held back, before compression."""
        ...

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


def prepare_rows(form: FileFormat, payload: Any) -> Any:
    """Encode the rows of a batch before they are split among files: lines of CSV, datums of Avro.

    Encoders do it themselves if it is not done; for thousands of small files it is faster beforehand.
    """
    place = FORMATS[form.type].prepare
    return payload if place is None else _load(place)(payload)


def open_encoder(form: FileFormat, out: Out, disk: Disk, *, chunk: int) -> Encoder:
    """Return the encoder of a new file; it holds back at most about `chunk` bytes."""
    new: Encoder = _load(FORMATS[form.type].encoder)(form, out, disk, chunk)
    return new


@functools.lru_cache
def _load(place: str) -> Any:
    """Return what a module of this room has."""
    module, _, name = place.partition(".")
    return getattr(import_module(f"s3lake.records.encode.{module}"), name)
