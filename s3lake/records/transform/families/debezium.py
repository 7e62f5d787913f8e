"""Debezium's transforms of change events: the row instead of its event, and headers as fields.

https://debezium.io/documentation/reference/stable/transformations/event-flattening.html
https://debezium.io/documentation/reference/stable/transformations/header-to-value.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from s3lake.records.transform.step.option_reader import OptionError, OptionReader
from s3lake.records.transform.step.record import MISSING, Record, Step, later, require_object, require_topic
from s3lake.records.transform.step.record_values import Header, TransformError, describe, to_header
from s3lake.text.option_values import parse_bool
from s3lake.text.quantities import format_count

ENVELOPE = ".Envelope"
"""What the name of a change event's schema ends with."""

DELETED = "__deleted"
_OF_ENVELOPE = ("op", "ts_ms", "ts_us", "ts_ns")
_OF_TRANSACTION = ("id", "total_order", "data_collection_order")
_MODES = {
    "drop": ("drop", False),
    "tombstone": ("null", False),
    "rewrite": ("rewrite", False),
    "rewrite-with-tombstone": ("rewrite", True),
    "delete-to-tombstone": ("tombstone", False),
}
_BY_SHAPE = (
    "Debezium leaves values without a schema as they are; here such a value is a change event if it has a text op, an "
    "object source, and before or after"
)


class AddedField(NamedTuple):
    """A field of a change event that is added to the row, or to the headers.

    Attributes:
        struct: the struct of the event that has it; None for the event itself.
        name: the name of the field, or header, that it becomes.
    """

    struct: str | None
    field: str
    name: str


@dataclass(frozen=True)
class Unwrapping:
    """The options of ExtractNewRecordState.

    Attributes:
        deletes: what a delete becomes: "drop" leaves it out, "rewrite" gives the row before it, "null" a null with the
            schema of the row, "tombstone" a null without one.
        keeps_tombstones: whether tombstones of the topic are kept.
        fields, headers: what is added.
        route: the column that names the topic; empty for none.
        listed_in: the header that lists columns to leave out; empty for none.
        drops_from_key: whether these are left out of the key, too.
        drops_optional: whether only optional columns are left out.
        fills: whether nulls become the defaults of their columns where `__deleted` is added.
    """

    deletes: str
    keeps_tombstones: bool
    fields: tuple[AddedField, ...]
    headers: tuple[AddedField, ...]
    route: str
    listed_in: str
    drops_from_key: bool
    drops_optional: bool
    fills: bool

    @property
    def marks(self) -> bool:
        """True if each row shows whether it is deleted."""
        return self.deletes == "rewrite"

    def list_tombstone_headers(self) -> list[Header]:
        """Return the headers of a tombstone, of which only the operation is known."""
        return [(one.name, b"d") for one in self.headers if one.field == "op"]

    def needs_row(self, *, deleted: bool) -> bool:
        """Return whether an event without a row cannot be unwrapped."""
        return not deleted or self.marks or bool(self.route)


def extract_new_record_state(options: OptionReader) -> Step:
    """Take the row out of a change event; leave values that are none as they are."""
    deletes, keeps_tombstones = _read_deletes(options)
    unwrapping = Unwrapping(
        deletes,
        keeps_tombstones,
        _read_references(options, "add.fields", "add.source.fields"),
        _read_references(options, "add.headers", "operation.header"),
        options.text("route.by.field", ""),
        options.text("drop.fields.header.name", "").strip(),
        options.parse("drop.fields.from.key", parse_bool, "false"),
        options.flag("drop.fields.keep.schema.compatible"),
        options.parse("replace.null.with.default", parse_bool, "false"),
    )
    drops_key = bool(unwrapping.listed_in) and unwrapping.drops_from_key

    def apply(record: Record) -> bool | None:
        return unwrap(unwrapping, record)

    reads = {"value", *(["headers"] if unwrapping.listed_in else []), *(["key"] if drops_key else [])}
    writes = {
        "value",
        *(["headers"] if unwrapping.headers else []),
        *(["topic"] if unwrapping.route else []),
        *(["key"] if drops_key else []),
    }
    return Step(
        apply,
        frozenset(reads),
        frozenset(writes),
        typed=later("debezium", "unwrap", unwrapping),
        decided_by="value",
        without_schema=_BY_SHAPE,
        makes_nulls=deletes in ("null", "tombstone"),
    )


def _read_deletes(options: OptionReader) -> tuple[str, bool]:
    """Return what a delete becomes, and whether tombstones of the topic are kept."""
    old = [name for name in ("delete.handling.mode", "drop.tombstones", "drop.deletes") if name in options]
    if "delete.tombstone.handling.mode" in options:
        options.ignore(*old, reason="delete.tombstone.handling.mode is set")
        return _MODES[options.parse("delete.tombstone.handling.mode", _parse_mode)]
    if not old:
        options.notices.append(
            "deletes and tombstones are left out, as in Debezium before 3.2; since then a delete is a tombstone: write "
            f"delete.tombstone.handling.mode, one of: {', '.join(_MODES)}"
        )
    keeps_tombstones = not options.flag("drop.tombstones")
    if "drop.deletes" in options:
        drops = options.flag("drop.deletes")
        if "delete.handling.mode" not in options:
            mode = "drop" if drops else "none"
            options.notices.append(f"drop.deletes={str(drops).lower()} is called delete.handling.mode={mode} today")
            return ("drop" if drops else "null"), keeps_tombstones
        options.ignore("drop.deletes", reason="delete.handling.mode is set")
    mode = options.choice("delete.handling.mode", ("drop", "none", "rewrite"), "drop")
    return {"none": "null"}.get(mode, mode), keeps_tombstones


def _parse_mode(text: str) -> str:
    from s3lake.text.option_values import parse_choice

    return parse_choice(text.strip(), tuple(_MODES))


def _read_references(options: OptionReader, name: str, old_name: str) -> tuple[AddedField, ...]:
    """Read a list of fields: `op`, `source.ts_ms`, `table:new_name`."""
    prefix = options.text(f"{name}.prefix", "__")
    texts = options.names(name)
    if old_name in options:
        texts = texts or (options.names(old_name) if old_name != "operation.header" else _read_operation(options))
        options.notices.append(f"{old_name} is called {name} today")
    references = tuple(_read_reference(text, name, prefix) for text in texts)
    names = [one.name for one in references]
    if twice := [one for one in names if names.count(one) > 1]:
        raise OptionError(f"{name}: two of them would be called {twice[0]!r}; write field:new_name", name)
    return references


def _read_operation(options: OptionReader) -> tuple[str, ...]:
    return ("op",) if options.flag("operation.header") else ()


def _read_reference(text: str, option: str, prefix: str) -> AddedField:
    field, colon, new_name = text.strip().partition(":")
    parts = field.split(".")
    if not all(parts) or len(parts) > 2 or bool(colon) != bool(new_name) or ":" in new_name:
        raise OptionError(f"{option}: {text!r} is not a field; write op, source.ts_ms or table:new_name", option)
    name = prefix + (new_name or "_".join(parts))
    return AddedField(parts[0] if len(parts) == 2 else _find_struct(field), parts[-1], name)


def _find_struct(field: str) -> str | None:
    """Return the struct of a change event that has a field of this name."""
    if field in _OF_ENVELOPE:
        return None
    if field in _OF_TRANSACTION:
        return "transaction"
    return "updateDescription" if field == "updateDescription" else "source"


def unwrap(unwrapping: Unwrapping, record: Record) -> bool | None:
    """Unwrap a record whose value has no schema: by the shape of the value. Return True to drop it."""
    event = record.value
    if event is None:
        record.headers += unwrapping.list_tombstone_headers()
        return not unwrapping.keeps_tombstones
    if not _is_event(event):
        return None
    added = [(one.name, _find(event, one)) for one in unwrapping.headers]
    record.headers += [(name, to_header(value)) for name, value in added if value is not MISSING]
    before, after = event.get("before"), event.get("after")
    deleted = after is None
    if deleted and (before is None or unwrapping.deletes == "drop"):
        return True  # without both rows it is a truncation
    row = before if deleted else after
    if unwrapping.needs_row(deleted=deleted):
        require_row(isinstance(row, dict), describe(row))
    if unwrapping.route:
        record.topic = route(row.get(unwrapping.route, MISSING), unwrapping.route, record.topic)
    dropped = read_dropped(unwrapping, record.headers)
    if unwrapping.drops_from_key and dropped and isinstance(record.key, dict):
        record.key = leave_out(record.key, dropped)
    if deleted and not unwrapping.marks:
        record.value = None
        return None
    more = {DELETED: str(deleted).lower()} if unwrapping.marks else {}
    if deleted:  # added fields stay, as with Debezium
        record.value = _add_references(unwrapping, event, leave_out(_join(row, more), dropped))
    else:
        record.value = leave_out(_add_references(unwrapping, event, _join(row, more)), dropped)
    return None


def _is_event(value: Any) -> bool:
    """Return whether a value without a schema is a change event."""
    if not isinstance(value, dict) or not isinstance(value.get("source"), dict) or not isinstance(value.get("op"), str):
        return False
    rows = [value[name] for name in ("before", "after") if name in value]
    return bool(rows) or value["op"] == "t"


def _find(event: Mapping[str, Any], reference: AddedField) -> Any:
    """Return a field of a change event, else the event's own of that name; MISSING if there is neither.

    It is null if its struct is.
    """
    parent = event if reference.struct is None else event.get(reference.struct, MISSING)
    if parent is None:
        return None
    if isinstance(parent, dict) and reference.field in parent:
        return parent[reference.field]
    return event.get(reference.field, MISSING)


def _add_references(unwrapping: Unwrapping, event: Mapping[str, Any], row: dict[str, Any]) -> dict[str, Any]:
    added = [(one.name, _find(event, one)) for one in unwrapping.fields]
    return _join(row, {name: value for name, value in added if value is not MISSING})


def _join(row: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    if both := row.keys() & more.keys():
        raise TransformError(refuse_twice(min(both)))
    return row | more if more else row


def refuse_twice(name: str) -> str:
    """Return why a column cannot be added to a row."""
    return f"the row has a column {name!r}, and a field of that name would be added: set another prefix"


def leave_out(value: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return an object without some fields."""
    return {name: inner for name, inner in value.items() if name not in names} if names else value


def require_row(is_object: bool, described: str) -> None:
    """Raise a TransformError if an event has no row that can take its place."""
    if not is_object:
        raise TransformError(
            f"the row of the change event is {described}, an object is needed (MongoDB's events need "
            "ExtractNewDocumentState, which s3lake does not have)"
        )


def route(topic: Any, column: str, present: str) -> str:
    """Return the topic that a row names, the present one if its column is null or blank.

    Raises:
        TransformError: the row has no such column of text, or no object key can contain the name.
    """
    if topic is MISSING:
        raise TransformError(f"route.by.field: the row has no column {column!r}")
    if topic is not None and not isinstance(topic, str):
        raise TransformError(f"route.by.field: column {column!r} is {describe(topic, column)}, a text is needed")
    return require_topic(topic) if topic and not topic.isspace() else present


def read_dropped(unwrapping: Unwrapping, headers: Sequence[Header]) -> tuple[str, ...]:
    """Return the columns that the header of a record lists, none without that header.

    Raises:
        TransformError: it is not a list of texts, as JSON.
    """
    header = unwrapping.listed_in
    text = next((value for name, value in headers if name == header), None) if header else None
    if text is None:
        return ()
    try:
        return tuple(msgspec.json.decode(text, type=list[str]))
    except msgspec.DecodeError:
        raise TransformError(f'header {header!r} is not a JSON list of column names, for example ["a","b"]') from None


# HeaderToValue


def header_to_value(options: OptionReader) -> Step:
    """Move or copy headers to fields, as text."""
    headers = options.names("headers", example="event_id")
    fields = options.names("fields", example="id")
    move = options.choice("operation", ("move", "copy")) == "move"
    if len(fields) != len(headers):
        counts = f"{format_count(len(fields), 'names')} for {format_count(len(headers), 'headers')}"
        message = f"fields: {counts}; each header needs the name of its field"
        raise OptionError(message, "fields")
    paths = {header: tuple(field.split(".")) for header, field in zip(headers, fields, strict=True)}

    def apply(record: Record) -> None:
        if record.value is None:
            return
        value = require_object(record.value, "value")
        for path, text in list_header_fields(paths, record.headers):
            value = _put(value, path, text)
        record.value = value
        if move:
            record.headers = [header for header in record.headers if header[0] not in paths]

    return Step(
        apply,
        frozenset({"headers", "value"}),
        frozenset({"headers", "value"} if move else {"value"}),
        typed=later("debezium", "header_to_value", paths, move),
        decided_by="value",
    )


def list_header_fields(
    paths: Mapping[str, tuple[str, ...]], headers: Sequence[Header]
) -> list[tuple[tuple[str, ...], str | None]]:
    """Return the path and the text of each header that becomes a field."""
    fields: list[tuple[tuple[str, ...], str | None]] = []
    for name, data in headers:
        if name in paths:
            try:
                fields.append((paths[name], None if data is None else data.decode()))
            except UnicodeDecodeError:
                raise TransformError(f"header {name!r} is not UTF-8, so it cannot be a text") from None
    return fields


def _put(value: dict[str, Any], path: tuple[str, ...], text: str | None) -> dict[str, Any]:
    first, *rest = path
    if not rest:
        return {**value, first: text}
    inner = value.get(first)
    if not isinstance(inner, dict):
        raise TransformError(f"field {first!r} is {describe(inner)}, an object is needed for {'.'.join(path)!r}")
    return {**value, first: _put(inner, tuple(rest), text)}
