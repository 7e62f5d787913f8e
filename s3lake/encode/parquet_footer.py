"""The footer of a Parquet file as a tree, so that row groups can stand in another file: Thrift's compact protocol.

pyarrow reads a footer, and writes one only behind row groups that it has written itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
MAGIC = b"PAR1"

# Numbers of fields in parquet.thrift.
_SCHEMA, _NUM_ROWS, _ROW_GROUPS, _COLUMN_ORDERS, _ENCRYPTION = 2, 3, 4, 7, 8
_COLUMNS, _FILE_OFFSET, _ORDINAL = 1, 5, 7
_PATH, _CHUNK_OFFSET, _META, _CHUNK_CRYPTO = 1, 2, 3, 8
_COMPRESSED, _DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE, _BLOOM, _BLOOM_LENGTH = 7, 9, 10, 11, 14, 15
_INDEXES = (4, 5, 6, 7)
"""Of a column chunk: where its page indexes stand, which are not copied."""


@dataclass
class _Field:
    type: int
    value: Any


_Struct = dict[int, _Field]
Group = _Struct
"""A row group."""


class _List(list[Any]):
    """Values of one type."""

    def __init__(self, type: int, values: list[Any]) -> None:
        super().__init__(values)
        self.type = type


class Unspliceable(Exception):
    """Row groups that cannot stand in another file as they are."""


class Footer:
    """What stands behind the row groups of a file."""

    def __init__(self, data: bytes) -> None:
        """Of the bytes between the row groups and the length at the file's end.

        Raises:
            Unspliceable: it has something that nobody here knows.
        """
        try:
            self._tree: _Struct = _Reader(data).struct()
        except (IndexError, KeyError, ValueError) as error:
            raise Unspliceable(f"its footer: {error!r}") from None
        if _ENCRYPTION in self._tree:
            raise Unspliceable("it is encrypted")

    @property
    def row_groups(self) -> list[Group]:
        """Each of them."""
        groups: list[Group] = self._tree[_ROW_GROUPS].value
        return groups

    def alike(self, other: Footer) -> bool:
        """Whether row groups of both can stand in one file."""
        return all(self._tree.get(one) == other._tree.get(one) for one in (_SCHEMA, _COLUMN_ORDERS))

    def take(self, group: Group, by: int) -> None:
        """Have a row group of another file too, which stands `by` bytes farther on in this one."""
        groups = self._tree[_ROW_GROUPS].value
        moved = _moved(group, by)
        moved[_ORDINAL] = _Field(_I16, len(groups))
        if len(groups) >= 2**15:
            del moved[_ORDINAL]
        groups.append(moved)

    def end(self) -> bytes:
        """The end of the file."""
        rows = sum(group[3].value for group in self.row_groups)
        out = bytearray()
        _write_struct(out, {**self._tree, _NUM_ROWS: _Field(_I64, rows)})
        return bytes(out) + len(out).to_bytes(4, "little") + MAGIC


def extent(group: Group) -> tuple[int, int]:
    """Where a row group begins and ends in its file.

    Raises:
        Unspliceable: it is not all in this file, or is encrypted.
    """
    begins, ends = [], []
    for chunk in group[_COLUMNS].value:
        if _PATH in chunk or _META not in chunk or _CHUNK_CRYPTO in chunk:
            raise Unspliceable("its columns are elsewhere, or encrypted")
        meta = chunk[_META].value
        first = min(meta[at].value for at in (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE) if at in meta)
        begins.append(first)
        ends.append(first + meta[_COMPRESSED].value)
    return min(begins), max(ends)


def _moved(group: _Struct, by: int) -> _Struct:
    moved = dict(group)
    if _FILE_OFFSET in moved:
        moved[_FILE_OFFSET] = _farther(moved[_FILE_OFFSET], by)
    chunks = []
    for chunk in group[_COLUMNS].value:
        meta = {at: field for at, field in chunk[_META].value.items() if at not in (_BLOOM, _BLOOM_LENGTH)}
        for at in (_DATA_PAGE, _INDEX_PAGE, _DICTIONARY_PAGE):
            if at in meta:
                meta[at] = _farther(meta[at], by)
        kept = {at: field for at, field in chunk.items() if at not in _INDEXES}
        kept[_META] = _Field(_STRUCT, meta)
        if kept[_CHUNK_OFFSET].value:  # 0, where the writer says nothing of it
            kept[_CHUNK_OFFSET] = _farther(kept[_CHUNK_OFFSET], by)
        chunks.append(kept)
    moved[_COLUMNS] = _Field(_LIST, _List(_STRUCT, chunks))
    return moved


def _farther(field: _Field, by: int) -> _Field:
    return _Field(field.type, field.value + by)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        self._read: dict[int, Callable[[], Any]] = {
            _BYTE: self._byte,
            _I16: self._zigzag,
            _I32: self._zigzag,
            _I64: self._zigzag,
            _DOUBLE: lambda: self._bytes(8),
            _BINARY: lambda: self._bytes(self._varint()),
            _LIST: self._list,
            _SET: self._list,
            _STRUCT: self.struct,
        }

    def struct(self) -> _Struct:
        fields: _Struct = {}
        number = 0
        while head := self._byte():
            delta, type = head >> 4, head & 15
            number = number + delta if delta else self._zigzag()
            value = type == _TRUE if type in (_TRUE, _FALSE) else self._value(type)
            fields[number] = _Field(type, value)
        return fields

    def _value(self, type: int) -> Any:
        if type not in self._read:
            raise ValueError(f"type {type}")
        return self._read[type]()

    def _list(self) -> _List:
        head = self._byte()
        type, size = head & 15, head >> 4
        size = self._varint() if size == 15 else size
        read = self._byte if type in (_TRUE, _FALSE) else self._read[type]
        return _List(type, [read() for _ in range(size)])

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, size: int) -> bytes:
        data = self._data[self._at : self._at + size]
        if len(data) < size:
            raise ValueError("it ends too early")
        self._at += size
        return data

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _zigzag(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


def _write_struct(out: bytearray, fields: _Struct) -> None:
    before = 0
    for number, field in sorted(fields.items()):
        type = (_TRUE if field.value else _FALSE) if field.type in (_TRUE, _FALSE) else field.type
        if 0 < number - before < 16:
            out.append((number - before) << 4 | type)
        else:
            out.append(type)
            _write_varint(out, number << 1)
        before = number
        if type not in (_TRUE, _FALSE):
            _write(out, type, field.value)
    out.append(0)


def _write(out: bytearray, type: int, value: Any) -> None:
    if type == _STRUCT:
        _write_struct(out, value)
    elif type in (_LIST, _SET):
        if len(value) < 15:
            out.append(len(value) << 4 | value.type)
        else:
            out.append(0xF0 | value.type)
            _write_varint(out, len(value))
        for one in value:
            _write(out, _BYTE if value.type in (_TRUE, _FALSE) else value.type, one)
    elif type == _BINARY:
        _write_varint(out, len(value))
        out += value
    elif type == _DOUBLE:
        out += value
    elif type == _BYTE:
        out.append(value)
    else:
        _write_varint(out, value << 1 ^ value >> 63)


def _write_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
