"""The digest of an object's records, however its bytes are cut into pages, blocks, row groups and batches.

A change that writes records into other objects compares the digests of both before it replaces the old ones.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from s3lake.lake.objects import content, open_columns
from s3lake.lake.objects.content import Body
from s3lake.lake.objects.shape import ObjectShape

_SIZE = 16


class Digest:
    """The records of one or several objects, one after the other.

    Each column is a stream of bytes of its own: where its nulls are, how long its values are, and the values.
    """

    def __init__(self) -> None:
        self._streams: dict[str, Any] = {}
        self._counts: dict[str, int] = {}

    def add(self, shape: ObjectShape, body: Body, key: str) -> int:
        """Add an object; return how many records it has.

        Raises:
            UnreadableError: it is not of its shape.
        """
        records = 0
        if shape.in_columns:
            for batch in open_columns(shape, body, key).batches:
                records += self.add_batch(batch)
            return records
        for texts in content.split_records(shape, body, key):
            if shape.frame is not None and not shape.frame.between and not shape.separable:
                self._add_bytes("", b"".join(texts))  # nothing marks where one ends
                records += len(texts)
            else:
                records += self.add_texts(texts)
        return records

    def add_texts(self, texts: list[bytes]) -> int:
        """Add records that are texts; return how many they are."""
        self._add_column("", pa.array(texts, pa.binary()))
        return len(texts)

    def add_batch(self, batch: pa.RecordBatch) -> int:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            self._add_column(f"/{name}", column)
        return int(batch.num_rows)

    def __str__(self) -> str:
        whole = blake2b(digest_size=_SIZE)
        for path in sorted(self._streams):
            whole.update(f"{path}\0{self._streams[path].hexdigest()}\n".encode())
        return whole.hexdigest()

    def _add_column(self, path: str, column: pa.Array) -> None:
        of = pa.types
        begun = self._counts.get(path, 0)
        self._counts[path] = begun + len(column)
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        if column.null_count:
            self._add_bytes(f"{path}?", pc.indices_nonzero(column.is_null()).to_numpy().astype(np.int64) + begun)
            column = column.drop_null()
        if of.is_map(column.type):
            entry = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
            column = column.cast(pa.list_(entry))
        if of.is_struct(column.type):
            for field, child in zip(column.type, column.flatten(), strict=True):
                self._add_column(f"{path}/{field.name}", child)
        elif of.is_list(column.type):
            self._add_bytes(f"{path}#", pc.list_value_length(column).to_numpy(zero_copy_only=False))
            self._add_column(f"{path}/", column.flatten())
        elif of.is_string(column.type) or of.is_binary(column.type):
            if not len(column):
                return
            offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset)
            self._add_bytes(f"{path}#", np.diff(offsets))
            if offsets[-1] > offsets[0]:
                self._add_bytes(path, column.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0])))
        elif not of.is_null(column.type):
            plain = column.cast(pa.uint8()) if of.is_boolean(column.type) else column
            width = plain.type.bit_width // 8
            if len(plain):
                self._add_bytes(path, plain.buffers()[1].slice(plain.offset * width, len(plain) * width))

    def _add_bytes(self, path: str, data: Any) -> None:
        if path not in self._streams:
            self._streams[path] = blake2b(digest_size=_SIZE)
        self._streams[path].update(data)
