"""The model of a configuration, in any dialect: frozen, one set of classes for the YAML file and the Python API.

Every rule of validity that needs no broker and no bucket is here.
"""

from s3lake.config.model.base import ConfigModel, RuleError
from s3lake.config.model.configuration import Config
from s3lake.config.model.connections import Kafka, Spark
from s3lake.config.model.converter import Converter, Registry
from s3lake.config.model.error_handling import Errors
from s3lake.config.model.format import Envelope, Format, Framing, Sidecars
from s3lake.config.model.layout import Padding, Time
from s3lake.config.model.s3 import S3, Credentials
from s3lake.config.model.sink import Sink
from s3lake.config.model.table import Table
from s3lake.config.model.transforms import Transform

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
