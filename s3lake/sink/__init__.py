"""The sink model: what the pipeline reads, whichever dialect a configuration was written in.

Frozen models, one set of classes for the YAML file and the Python API. Every rule of validity that needs no broker and
no bucket lives here.
"""

from s3lake.sink.config import Config, may_collide, sinks_of
from s3lake.sink.connections import S3, Credentials, Kafka, Retries, Spark
from s3lake.sink.contract import Contract, Gate
from s3lake.sink.errors import Errors
from s3lake.sink.flush import Flush
from s3lake.sink.format import Converter, Envelope, Format, Framing, Sidecars
from s3lake.sink.layout import Layout, Padding, Time
from s3lake.sink.part import Misfit, Part
from s3lake.sink.registry import Registry
from s3lake.sink.sink import Index, Sink
from s3lake.sink.source import Source
from s3lake.sink.sql import Sql
from s3lake.sink.table import Table
from s3lake.sink.transforms import Transform

__all__ = [
    "S3",
    "Config",
    "Contract",
    "Converter",
    "Credentials",
    "Envelope",
    "Errors",
    "Flush",
    "Format",
    "Framing",
    "Gate",
    "Index",
    "Kafka",
    "Layout",
    "Misfit",
    "Padding",
    "Part",
    "Registry",
    "Retries",
    "Sidecars",
    "Sink",
    "Source",
    "Spark",
    "Sql",
    "Table",
    "Time",
    "Transform",
    "may_collide",
    "sinks_of",
]
