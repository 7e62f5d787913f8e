"""Files written for the tests."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from s3lake.index.store.upload import Spill
from s3lake.records.encode import FileFormat, open_encoder

LINES = ("", "\n", "\n")
VERBS = ("", "drain", "relieve")


def records(*values: bytes) -> pa.BinaryArray:
    return pa.array(values, pa.binary())


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values) for values in columns.values()], names=list(columns))


def written(form: FileFormat, payloads: Iterable[Any], verbs: Iterable[str] = (), *, chunk: int = 10**6) -> bytes:
    """The file of the payloads; after each, the encoder does the verb of its place."""
    out: list[bytes] = []
    spill = Spill()
    file = open_encoder(form, out.append, spill, chunk=chunk)
    message = iter(verbs)
    for payload in payloads:
        file.write(payload)
        if verb := next(message, ""):
            getattr(file, verb)()
    file.close()
    spill.close()
    return b"".join(out)
