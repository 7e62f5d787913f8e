"""Aiven's rows: the fields in order, a comma between, no quotes; what could need them is in base64."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

from s3lake.objects.parts import flat_fields
from s3lake.objects.shape import Shape
from s3lake.verify import connect, digest, parts
from s3lake.verify.log import Records


class FlatRows:
    """How such rows are digested; a key or value with a schema (`connect_json`) is compared by what it means."""

    def __init__(self, shape: Shape) -> None:
        assert shape.envelope is not None
        self._shape, self._fields = shape, shape.envelope.fields
        self._as_it_is = shape.envelope.value_encoding == "none"
        by_meaning = {part for part in ("key", "value") if shape.converter(part) == parts.CONNECT}
        self._by_meaning = [field in by_meaning for field in self._fields]

    def texts(self, records: Records) -> list[bytes]:
        """The rows byte for byte."""
        return list(map(b",".join, zip(*(self._texts(field, records) for field in self._fields), strict=True)))

    def expected(self, records: Records) -> list[bytes]:
        """Digests of records of Kafka."""
        columns = [
            self._meanings(field, records) if by_meaning else self._texts(field, records)
            for field, by_meaning in zip(self._fields, self._by_meaning, strict=True)
        ]
        return [digest.of_record(row) for row in zip(*columns, strict=True)]

    def rows(self, lines: Sequence[bytes]) -> list[bytes]:
        """Digests of what a file holds."""
        return [digest.of_text(line, self._row) for line in lines]

    def _row(self, line: bytes) -> list[Any]:
        fields = flat_fields(self._shape, line)
        if len(fields) != len(self._fields):
            raise ValueError(f"{len(fields)} fields")
        return [self._of_file(at, text) if self._by_meaning[at] else text for at, text in enumerate(fields)]

    def _of_file(self, at: int, text: bytes) -> Any:
        if not (self._as_it_is and self._fields[at] == "value"):
            text = base64.b64decode(text, validate=True)
        return connect.plain(connect.exactly(text)) if text else None

    def _meanings(self, field: str, records: Records) -> Iterable[Any]:
        read = parts.of_kafka(parts.CONNECT)
        return map(read, records.keys if field == "key" else records.values)

    def _texts(self, field: str, records: Records) -> Sequence[bytes]:
        match field:
            case "key":
                return list(map(_encoded, records.keys))
            case "value":
                return list(map(self._value, records.values))
            case "offset":
                return [b"%d" % offset for offset in records.offsets]
            case "timestamp":
                return [b"%d" % stamp for stamp in records.timestamps]
        return list(map(_headers, records.headers))

    def _value(self, value: bytes | None) -> bytes:
        return parts.in_one_line(value or b"") if self._as_it_is else _encoded(value)


def _headers(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    return b"".join(b"%b:%b;" % (_encoded(name.encode()), _encoded(value)) for name, value in headers)


def _encoded(value: bytes | None) -> bytes:
    return b"" if value is None else base64.b64encode(value)
