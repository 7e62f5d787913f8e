"""The model of a configuration, in any dialect: frozen, one set of classes for the YAML file and the Python API.

Every rule of validity that needs no broker and no bucket is here.
"""

from s3lake.sink.config import Config
from s3lake.sink.connections import Kafka, Spark
from s3lake.sink.converter import Converter, Registry
from s3lake.sink.errors import Errors
from s3lake.sink.format import Envelope, Format, Framing, Sidecars
from s3lake.sink.layout import Padding, Time
from s3lake.sink.model import ConfigModel, RuleError
from s3lake.sink.s3 import S3, Credentials
from s3lake.sink.sink import Sink
from s3lake.sink.table import Table
from s3lake.sink.transforms import Transform

__all__ = [
    "S3",
    "Config",
    "ConfigModel",
    "Converter",
    "Credentials",
    "Envelope",
    "Errors",
    "Format",
    "Framing",
    "Kafka",
    "Padding",
    "Registry",
    "RuleError",
    "Sidecars",
    "Sink",
    "Spark",
    "Table",
    "Time",
    "Transform",
]
