"""What columns are in words, from the schema of a topic's values."""

import functools
import logging
from collections.abc import Mapping

from s3lake.convert.converters import CONVERTERS
from s3lake.errors import S3LakeError
from s3lake.schema.prose import of_fields
from s3lake.sink import Sink
from s3lake.sink.registry import Registry

_log = logging.getLogger(__name__)


def of_columns(sink: Sink, topic: str) -> Mapping[str, str]:
    """Words by column: of the newest schema of the topic's values, by the name that serializers give it.

    It only says more of what is landed: without an answer of the registry there are none.
    """
    converter = sink.converter
    if sink.envelope is not None or converter.registry is None or not CONVERTERS[converter.value].framed:
        return {}
    return _of_subject(converter.registry, f"{topic}-value")


@functools.lru_cache(maxsize=1024)
def _of_subject(registry: Registry, subject: str) -> Mapping[str, str]:
    from s3lake.schema.registry import UnknownSchema, client

    try:
        schema = client(registry.connection).newest(subject)
    except (S3LakeError, UnknownSchema) as error:
        _log.info("columns have no descriptions: %s", error)
        return {}
    return of_fields(schema.kind, schema.text)
