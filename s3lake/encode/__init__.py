"""Encoders: payloads in, a file's bytes out as they come. One small file per format, the same three verbs.

To add a format: write its encoder, and say what the format is in `formats.py`.
"""

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from s3lake.encode.formats import FORMATS, FileFormat

Out = Callable[[bytes | memoryview], None]

__all__ = ["Disk", "Encoder", "FileFormat", "Out", "encoder", "prepared"]


class Disk(Protocol):
    """Where rows go that memory has no room for."""

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


def prepared(form: FileFormat, payload: Any) -> Any:
    """What can be done for a whole batch before its rows are split among files: rows of CSV, datums of Avro.

    Encoders do it themselves where nobody has; for thousands of small files it is faster beforehand.
    """
    prepare = FORMATS[form.type].prepare
    return payload if prepare is None else _load(prepare)(payload)


def encoder(form: FileFormat, out: Out, disk: Disk, *, chunk: int) -> Encoder:
    """The encoder of a new file; it holds back at most about `chunk` bytes."""
    made: Encoder = _load(FORMATS[form.type].encoder)(form, out, disk, chunk)
    return made


@functools.lru_cache
def _load(place: str) -> Any:
    """Return what a module of this room has."""
    module, _, name = place.partition(".")
    return getattr(import_module(f"s3lake.encode.{module}"), name)
