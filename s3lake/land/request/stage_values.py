"""What a sink's configuration means to the stages: the one place that turns a sink and a topic into plain values.

Those travel to Spark's workers, where no stage knows of a configuration. What brings Arrow along is imported where it
is made: keys and transforms are also asked of a configuration that is not landed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from s3lake import hours
from s3lake.config.model.format import Format
from s3lake.errors import ConfigurationError
from s3lake.records.convert.read.converters import CONVERTERS, has_schema_ids
from s3lake.records.encode.formats import FORMATS, FileFormat
from s3lake.records.layout.elements import Reading
from s3lake.records.layout.object_keys import KeyLayout, KeyTemplate
from s3lake.records.layout.pieces import FixedText
from s3lake.records.schema.columns import grammar
from s3lake.records.schema.columns.types import fields_of, to_document
from s3lake.records.schema.columns.union import format_type
from s3lake.records.transform.chain.chain import Chain
from s3lake.records.transform.sql import parser

if TYPE_CHECKING:
    from s3lake.config.model import Sink
    from s3lake.index.store import Stores
    from s3lake.land.sql.sql_table import Tabulate
    from s3lake.land.task.pipeline import Work
    from s3lake.land.task.staging import FileRule
    from s3lake.records.convert.conversion import Conversion
    from s3lake.records.convert.fit.contract import Contract
    from s3lake.records.convert.read.keys_and_values import RecordEnvelope
    from s3lake.records.layout.pieces import Piece
    from s3lake.records.schema.columns.types import Columns
    from s3lake.records.schema.registry.registry_connection import Connection
    from s3lake.records.transform.sql.query import Projection
    from s3lake.source.kafka.dead_letter_topic import DeadLetterTarget

_NO_LIMIT = 2**63 - 1


def build_work(
    sink: Sink,
    topic: str,
    stores: Stores,
    hour: str,
    *,
    commit: str,
    mark: str = "",
    wallclock_ms: int = 0,
    dead_letter_topic: DeadLetterTarget | None = None,
) -> Work:
    """Build the work of one micro-batch; `wallclock_ms` is its time, whenever its tasks run."""
    from s3lake.land.task.pipeline import Work

    transforms = build_chain(sink) if sink.transforms else None
    needs, projection = transforms.needs if transforms else frozenset[str](), build_projection(sink, transforms)
    if projection is not None:
        needs |= {name.removeprefix("_") for name in projection.query.meta}
    landed, hour_ms = sink.after_transforms, hours.start_ms(hour)
    keys = build_key_layout(landed, topic, mark, wallclock_ms=wallclock_ms, hour_ms=hour_ms)
    return Work(
        stores=stores,
        bucket=sink.bucket,
        commit=commit,
        hour_start_ms=hour_ms,
        conversion=build_conversion(
            landed, topic, keyed=keys.needs("key"), valued=keys.needs("value"), time_path=keys.time_path
        ),
        keys=keys,
        files=build_file_rule(sink),
        tolerant=sink.errors.tolerance == "all",
        log=sink.errors.log,
        wallclock_ms=wallclock_ms,
        chain=transforms,
        projection=projection,
        needs=needs,
        identified=frozenset(
            part
            for part, converter in (("key", sink.converter.key), ("value", sink.converter.value))
            if has_schema_ids(converter, _registry(sink))
        ),
        dead_letter_topic=dead_letter_topic,
    )


def build_chain(sink: Sink) -> Chain:
    """The sink's transforms."""
    converter = sink.converter
    return Chain(
        sink.transforms_as_data,
        converter.key,
        converter.value,
        _registry(sink),
        keeps_schemas=sink.sql is None,
        tabular=FORMATS[sink.format.type].tabular,
        null_to_default=converter.null_to_default,
        exact=converter.times == "exact",
    )


def build_projection(sink: Sink, transforms: Chain | None) -> Projection | None:
    """Return the sink's SQL as tasks apply it, after transforms. Return None if the sink has none."""
    if sink.sql is None:
        return None
    from s3lake.records.transform.sql.query import Projection

    converter = transforms.value_converter if transforms else sink.converter.value
    return Projection(parser.parse_sql(sink.sql.select, sink.sql.where), converter)


def build_tabulate(sink: Sink, topic: str, work: Work) -> Tabulate:
    """Return the first stage of a sink whose SQL Spark computes; `work` is the second."""
    from s3lake.land.sql.sql_table import Tabulate

    assert work.projection is not None
    return Tabulate(
        topic=topic,
        key=work.chain.key_converter if work.chain else sink.converter.key,
        value=work.projection.converter,
        query=work.projection.query,
        chain=work.chain,
        wallclock_ms=work.wallclock_ms,
        carried=work.record_columns,
    )


def build_conversion(
    sink: Sink, topic: str, *, keyed: bool = False, valued: bool = True, time_path: tuple[str, ...] = ()
) -> Conversion:
    """The conversion; `keyed` and `valued` are True if the layout reads keys and values, `time_path` is its time."""
    from s3lake.records.convert.conversion import Conversion

    return Conversion(
        key=sink.converter.key,
        value=sink.converter.value,
        format=sink.format.type,
        connect_properties=sink.format.connect_properties,
        nulls=sink.nulls,
        envelope=build_envelope(sink, topic),
        declared={name: grammar.parse_type(text) for name, text in sink.columns.items()},
        keys=sink.sidecars.keys,
        headers=sink.sidecars.headers,
        apart=sink.layout.tombstones is not None,
        registry=_registry(sink),
        keyed=keyed and CONVERTERS[sink.converter.key].framed,
        valued=valued,
        max_columns=sink.max_columns,
        contract=build_contract(sink),
        compatibility=sink.schema_policy.compatibility,
        table="" if sink.table is None else "iceberg",
        null_to_default=sink.converter.null_to_default,
        exact=sink.converter.times == "exact",
        time_path=time_path,
    )


def build_contract(sink: Sink) -> Contract:
    """Return the rules that values have to fulfil."""
    from s3lake.records.convert.fit.contract import Contract

    asked = sink.schema_policy
    return Contract(
        on_new_field=asked.on_new_field,
        on_type_change=asked.on_type_change,
        required=tuple(tuple(path.split(".")) for path in asked.required),
        rules=b"" if asked.rules is None else msgspec.json.encode(asked.rules),
    )


def build_envelope(sink: Sink, topic: str) -> RecordEnvelope | None:
    """The parts of a record that a row holds, None if it holds the value alone."""
    from s3lake.records.convert.read.keys_and_values import RecordEnvelope

    configured = sink.envelope
    if configured is None:
        return None
    return RecordEnvelope(
        style=configured.style,
        fields=tuple(configured.fields),
        topic=topic,
        value_encoding=configured.value_encoding,
        bare=configured.bare,
        printed_stream=configured.stream,
        printed_topic=configured.topic or topic,
    )


def build_key_layout(
    sink: Sink, topic: str, renamed: str = "", *, wallclock_ms: int | None = 0, hour_ms: int = 0
) -> KeyLayout:
    """The rule of keys.

    Args:
        topic: one of its topics.
        renamed: mark of the commit.
        wallclock_ms: the micro-batch's time, whenever its tasks run: a retry gives the same keys. None for any time.
        hour_ms: when the tile's hour begins.
    """

    def compose(pieces: tuple[Piece, ...]) -> KeyTemplate:
        return KeyTemplate.from_pieces(
            (FixedText(sink.root), *pieces),
            topic,
            extension=sink.extension,
            sidecars=sink.sidecars.endings,
            routed=sink.renames_topics,
            mark=renamed,
            wallclock_ms=wallclock_ms,
            hour_ms=hour_ms,
        )

    layout = sink.layout
    tombstones = layout.tombstone_pieces
    return KeyLayout(
        root=sink.root,
        sink=sink.name,
        topic=topic,
        renamed=renamed,
        data=compose(layout.pieces),
        tombstones=compose(tombstones) if tombstones else None,
        reading=Reading(sink.converter.key, layout.missing),
        reserved=tuple(f"{prefix}/" for prefix in (sink.index.prefix, *sink.other_indexes)),
        offset=layout.padding.numbers[1],
    )


def build_file_rule(sink: Sink) -> FileRule:
    """How files are written, and when they are closed."""
    from s3lake.land.task.staging import FileRule

    flush = sink.flush
    data = build_file_format(sink.format)
    sidecars = {stream: build_file_format(sink.sidecars.format(type)) for stream, type in sink.sidecars.types.items()}
    return FileRule(
        formats={
            "data": data if sink.envelope is None else replace(data, header=False),  # its cells have no names
            **sidecars,
        },
        count=flush.count or _NO_LIMIT,
        size=flush.size,
        span_ms=round(flush.span * 1000) if flush.span is not None else None,
        budget=sink.memory_budget,
        endings=sink.sidecars.by_stream,
    )


def build_file_format(format: Format) -> FileFormat:
    """The form of data files."""
    frame = format.effective_framing
    framing = (frame.opening, frame.between, frame.closing) if frame else None
    return FileFormat(format.type, format.codec, format.level, format.header, framing)


def refuse_other_types(sink: Sink, topic: str, recorded: Columns) -> None:
    """Columns that the user gives have the types that the sink's files have.

    Raises:
        ConfigurationError: one has another.
    """
    value = fields_of(recorded.get("value")) if sink.envelope else recorded
    for name, text in sink.columns.items():
        # As documents, where the order of a struct's fields means nothing: the user may list them in another one.
        if name in value and to_document({name: grammar.parse_type(text)}) != to_document({name: value[name]}):
            raise ConfigurationError(
                f"sink {sink.name}: column {name!r} is {text} now, and {format_type(value[name])} in the files of "
                f"topic {topic!r}: keep that type, or give the sink another name"
            )


def _registry(sink: Sink) -> Connection | None:
    registry, errors = sink.converter.registry, sink.errors
    if registry is None:
        return None
    return replace(registry.connection, patience_s=errors.retry_timeout, longest_pause_s=errors.retry_delay)
