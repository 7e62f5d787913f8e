"""Files of Avro in memory, and the schema in them."""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa

from s3lake.records.encode import FileFormat
from s3lake_tests.records.encode.written_files import written


def write_avro_file(payload: pa.RecordBatch) -> bytes:
    return written(FileFormat("avro", "none"), [payload])


def read_avro_schema(payload: pa.RecordBatch) -> Any:
    return json.loads(fastavro.reader(io.BytesIO(write_avro_file(payload))).metadata["avro.schema"])
