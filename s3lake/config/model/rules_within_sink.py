"""Rules of parts of a sink that need the whole sink.

A sink that is called `landed` has the converters after its transforms.
"""

from s3lake.config.model.base import RuleError
from s3lake.config.model.sink_settings import SinkSettings
from s3lake.config.model.table import HOUR
from s3lake.records.convert.read import converters
from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.records.encode.formats import FORMATS
from s3lake.records.layout import partition_elements, template
from s3lake.records.layout import pieces as key_pieces
from s3lake.records.layout.pieces import Extension, FixedText, HeaderElement, Number, Piece, Topic
from s3lake.records.layout.pieces import FieldElement as ValueField
from s3lake.records.schema.columns import grammar
from s3lake.records.schema.columns.types import Decimal, Primitive
from s3lake.records.schema.columns.union import LEGAL_NAME

_PARTITION = ("table", "partition")


def check_sql(sink: SinkSettings) -> None:
    """Check that values have the fields that SQL reads: Spark reads a missing `user` as its function.

    Raises:
        RuleError: they do not have them.
    """
    converter = sink.transformed_converter.value
    if sink.sql is None:
        return
    if CONVERTERS[converter].wrapped and (sink.sql.fields or not sink.sql.keeps_values):
        raise RuleError(
            f"SQL does not read the values of converter.value {converter}: set it to json, and take the payload "
            "out with the transform iggy.unwrap_envelope, field: payload",
            "sql",
        )
    if CONVERTERS[converter].gives == "json":
        return
    fields = sorted(sink.sql.fields - {"value"})
    if fields:
        raise RuleError(
            f"{fields[0]!r} needs a field of the value, which converter.value {converter} does not give: "
            "set converter.value to json, or use the whole value, `value`",
            "sql",
        )


def _shows_columns(converter: converters.ConverterSpec) -> bool:
    """Return whether columns are found in the data, so that a user can declare their types."""
    return converter.gives == "json" and converter.inferred


def check_columns(landed: SinkSettings) -> None:
    """Check that values get the columns that are declared, and that the format takes their types.

    Raises:
        RuleError: they do not, or it does not.
    """
    form = landed.format.type
    if landed.columns and not (FORMATS[form].tabular and _shows_columns(CONVERTERS[landed.converter.value])):
        allowed = converters.list_in_words(_shows_columns)
        raise RuleError(f"columns need format avro, parquet or csv, and converter.value {allowed}", "columns")
    for name, text in landed.columns.items():
        if form == "csv" and not isinstance(grammar.parse_type(text), Primitive | Decimal):
            raise RuleError(f"{text!r} does not fit into a cell of CSV: take a plain type", "columns", name)
        if form == "avro" and not LEGAL_NAME.fullmatch(name):
            raise RuleError(f"{name!r} is not a name in Avro: letters, digits and '_', no digit first", "columns", name)


def check_schema_policy(landed: SinkSettings) -> None:
    """Check that a sink can have its schema policy.

    Raises:
        RuleError: it cannot.
    """
    policy = landed.schema_policy
    tabular = FORMATS[landed.format.type].tabular
    is_json = CONVERTERS[landed.converter.value].gives == "json"
    allowed = converters.list_in_words(lambda converter: converter.gives == "json")
    flat = landed.envelope is not None and landed.envelope.style == "flat"
    for name in ("on_new_field", "on_type_change"):
        if getattr(policy, name) != "evolve" and not (tabular and is_json and not flat):
            raise RuleError(
                f"{name} needs columns of values: format avro, parquet or csv, and converter.value {allowed}",
                *("schema", name),
            )
        if getattr(policy, name) == "dead_letter" and landed.errors.tolerance == "none":
            raise RuleError("dead letters need errors.tolerance: all: set it, or write fail", "schema", name)
    for name in ("required", "rules"):
        if getattr(policy, name) and not is_json:
            raise RuleError(f"{name} needs values with fields: converter.value {allowed}", "schema", name)
    if policy.compatibility != "none" and not (tabular and CONVERTERS[landed.converter.value].versioned):
        versioned = converters.list_in_words(lambda converter: converter.versioned)
        raise RuleError(
            f"compatibility is about schemas: format avro, parquet or csv, and converter.value {versioned}",
            *("schema", "compatibility"),
        )
    if policy.gate.max_broken is not None and not (policy.required or policy.rules):
        raise RuleError("max_broken is about required and rules: give one of them", "schema", "gate", "max_broken")


def check_table(sink: SinkSettings) -> None:
    """Check that a sink can have its table.

    Raises:
        RuleError: it cannot.
    """
    table = sink.table
    if table is None:
        return
    if sink.format.type != "parquet":
        raise RuleError(
            f"a table lists files of parquet, this sink writes {sink.format.type}; write format.type: parquet, or take "
            "the table out",
            "table",
        )
    if (sink.layout.template or "").startswith("/") and not sink.root:
        raise RuleError("a table's files have no empty step: take the '/' at the template's beginning out", "table")
    place = (table.location or "").partition("://")[2].rstrip("/") + "/"
    index = f"{sink.bucket}/{sink.index.prefix}/"
    if place.startswith(index) or ".indexes" in place.split("/"):
        raise RuleError(
            f"{table.location!r} is inside an index, which only s3lake writes: write another location",
            "table",
            "location",
        )
    if not sink.exactly_once:
        raise RuleError("a table needs exactly_once: without it a file may be replaced under the same name", "table")
    if sink.has_several_topics and "{topic}" not in table.name:
        raise RuleError(
            f"{table.name!r} would hold several topics: give each a table of its own with {{topic}}", "table", "name"
        )
    pieces = [partition_elements.parse_element(text)[1] for text in sink.layout.partition_by]
    fields = [".".join(piece.path) for piece in pieces if isinstance(piece, ValueField)]
    if HOUR not in table.partition:
        raise RuleError(f"{HOUR} is missing: without it the rows of a replaced hour are not known; add it", *_PARTITION)
    for position, column in enumerate(table.partition):
        if column != HOUR and column not in fields:
            allowed = ", ".join([HOUR, *fields])
            raise RuleError(
                f"{column!r}: a file has one value only of a field in layout.partition_by; use {allowed}",
                *(*_PARTITION, position),
            )


def check_layout(landed: SinkSettings) -> None:
    """Check that the layout fits the rest of a sink.

    Raises:
        ValueError: a rule is broken.
    """
    layout = landed.layout
    _check_fields((*layout.pieces, *(layout.tombstone_pieces or ())), landed)
    if layout.template is None:
        return
    templates = {"template": layout.pieces, "tombstones": layout.tombstone_pieces}
    for name, pieces in templates.items():
        if pieces is not None:
            for rule in (_check_elements, _check_digits, _check_beginning):
                rule(name, pieces, landed)
    if layout.tombstone_pieces is not None:
        _check_tombstones(layout.tombstone_pieces)
        if has_offset(layout.pieces) != has_offset(layout.tombstone_pieces):
            raise ValueError("template and tombstones have either both an offset or none: add {offset} to the other")


def has_offset(pieces: tuple[Piece, ...]) -> bool:
    """Return whether the key contains the offset that a file begins or ends with."""
    return any(isinstance(piece, Number) and piece.name in ("offset", "last_offset") for piece in pieces)


def _check_fields(pieces: tuple[Piece, ...], sink: SinkSettings) -> None:
    """Check that keys and values have the fields that a key contains."""
    for piece in pieces:
        source = getattr(piece, "source", "")
        converter = {"value": sink.converter.value, "key": sink.converter.key}.get(source)
        if converter is not None and getattr(piece, "path", None) and CONVERTERS[converter].gives != "json":
            allowed = converters.list_in_words(lambda each: each.gives == "json" and not each.framed)
            raise ValueError(
                f"{_spell(piece)} needs a field of the {source}, which converter.{source} {converter} does not give: "
                f"set converter.{source} to {allowed}, or take it out"
            )


def _check_elements(name: str, pieces: tuple[Piece, ...], sink: SinkSettings) -> None:
    """Check that files of different topics, topic-partitions and offsets get different keys."""
    if not sink.exactly_once:
        return
    lacking = []
    if sink.has_several_topics and not any(isinstance(piece, Topic) for piece in pieces):
        lacking.append("{topic}")
    if not any(isinstance(piece, Number) and piece.name == "partition" for piece in pieces):
        lacking.append("{partition}")
    if not has_offset(pieces):
        lacking.append("{offset}")
    if lacking:
        raise ValueError(
            f"{name} lacks {' and '.join(lacking)}: a later file would get the key of an earlier one and replace it; "
            f"add {'them' if len(lacking) > 1 else 'it'}, or allow that with exactly_once: false"
        )


def _check_digits(name: str, pieces: tuple[Piece, ...], sink: SinkSettings) -> None:
    """Check that a number is never next to another element's digits."""
    before: Piece | None = None
    between = ""
    for piece in pieces:
        text = _fixed_text(piece, sink)
        if text is not None:
            between += text
            continue
        digits_only = not between or (between.isascii() and between.isdigit())
        if before is not None and digits_only and (isinstance(before, Number) or isinstance(piece, Number)):
            raise ValueError(
                f"{name}: {_spell(before)} and {_spell(piece)} are next to each other, so that two offsets can get one "
                "key: write something that is not a digit between them, for example '-'"
            )
        before, between = piece, ""


def _fixed_text(piece: Piece, sink: SinkSettings) -> str | None:
    match piece:
        case FixedText(text):
            return text
        case Extension():
            return sink.extension
        case Topic() if len(sink.topics) == 1:
            return sink.topics[0]
    return None


def _check_beginning(name: str, pieces: tuple[Piece, ...], sink: SinkSettings) -> None:
    """Check that the template's text leads neither out of the prefix nor into the index."""
    first = pieces[0].text if isinstance(pieces[0], FixedText) else ""
    if first.startswith("/") and sink.root:
        raise template.template_error(first, 0, "a name is missing between the prefix and '/': take it out")
    index = f"{sink.index.prefix}/"
    head = sink.root + first
    if head.startswith(index) and not sink.root.startswith(index):  # a prefix is compared with all sinks' indexes
        raise ValueError(
            f"{name}: {head!r} is in the index {index!r}: begin with another text, or write another index.prefix"
        )


def _check_tombstones(pieces: tuple[Piece, ...]) -> None:
    if any(
        isinstance(piece, key_pieces.FieldElement | key_pieces.TimeElement) and piece.source == "value"
        for piece in pieces
    ):
        raise ValueError("tombstones: a record without a value has no fields: take {field:…} and times of a field out")


def _spell(piece: Piece) -> str:
    """Return an element as templates write it."""
    name = key_pieces.get_template_name(piece)
    path = (piece.name,) if isinstance(piece, HeaderElement) else getattr(piece, "path", ())
    argument = getattr(piece, "pattern", ".".join(path))
    return f"{{{name}:{argument}}}" if argument else f"{{{name}}}"
