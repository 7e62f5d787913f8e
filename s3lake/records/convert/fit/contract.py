"""The contract of a sink with its values: what they must be, and what is done with fields that depart from it.

Fields are held against the columns that were recorded when a micro-batch began. A field that departs from them is taken
out of its record if the sink allows it, and counted; else its record is refused, or the micro-batch fails.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import structs

from s3lake.plugins import require_extra
from s3lake.records.convert.fit.schema_projection import find_holders
from s3lake.records.convert.read.json.inferred_types import decode_checked_json, infer_type, widen
from s3lake.records.convert.read.json.unplaced_fields import find_unplaced
from s3lake.records.convert.read.keys_and_values import Column, Schemas
from s3lake.records.convert.read.value_checks import Refusals
from s3lake.records.schema.columns.arrow_types import arrow_type
from s3lake.records.schema.columns.details import Detail
from s3lake.records.schema.columns.types import (
    PLACEHOLDER,
    UNKNOWN,
    Columns,
    List,
    Map,
    Struct,
    Type,
    fields_of,
    item_of,
    write_name,
)
from s3lake.records.schema.columns.union import Conflict, drop_empty, format_type, join_path, try_unify
from s3lake.records.schema.connect_schema import Schema

if TYPE_CHECKING:
    import jsonschema_rs

_SHOWN = 300
Rule = Literal["evolve", "drop", "dead_letter", "fail"]
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.encode


class Departure(NamedTuple):
    """A field that is not as its column, by path; what it does; and why."""

    path: str
    rule: Rule
    reason: str


@dataclass
class ContractResult:
    """Rows after the contract.

    Attributes:
        column: their values without the fields that depart, the refused ones too.
        refused: row -> why.
        forbidden: rows that fail the micro-batch, and why.
        fields_left_out: path of a field -> records that it was left out of.
    """

    column: Column
    refused: Refusals = field(default_factory=dict)
    forbidden: Refusals = field(default_factory=dict)
    fields_left_out: Counter[str] = field(default_factory=Counter)

    def note(self, row: int, departures: list[Departure]) -> None:
        """Note the departures of a row: the sternest rule decides."""
        for departure in departures:
            if departure.rule == "fail":
                self.forbidden.setdefault(row, departure.reason)
            elif departure.rule == "dead_letter":
                self.refused.setdefault(row, departure.reason)
        if row in self.forbidden:
            self.refused.pop(row, None)
        elif row not in self.refused:
            self.fields_left_out.update({departure.path for departure in departures})


@dataclass(frozen=True)
class Contract:
    """A sink's contract, as plain values.

    Attributes:
        required: paths of fields.
        rules: a JSON Schema, as JSON; empty for none.
        columns: the recorded columns that the value's fields are held against; empty before any were recorded.
    """

    on_new_field: Rule = "evolve"
    on_type_change: Rule = "evolve"
    required: tuple[tuple[str, ...], ...] = ()
    rules: bytes = b""
    columns: Columns = field(default_factory=dict)

    @property
    def looks_at_values(self) -> bool:
        """True if every value has to be read as JSON."""
        return bool(self.required or self.rules)

    @property
    def compares_fields(self) -> bool:
        """True if fields are compared with columns, once any are recorded."""
        return (self.on_new_field, self.on_type_change) != ("evolve", "evolve")

    def find_broken(self, texts: pa.BinaryArray, without: Collection[int]) -> Refusals:
        """Values, as JSON, that lack a required field or break the rules; rows `without` hold anything."""
        refused: Refusals = {}
        for row, text in enumerate(texts.to_pylist()):
            if text is not None and row not in without and (reason := self._find_broken_rule(text)):
                refused[row] = reason
        return refused

    def _find_broken_rule(self, text: bytes) -> str | None:
        try:
            value = decode_checked_json(text)
        except Conflict as error:
            return str(error)
        return self._find_missing(value) or (_find_broken(self.rules, value) if self.rules else None)

    def _find_missing(self, value: Any) -> str | None:
        for path in self.required:
            inner = value
            for step in path:
                inner = inner.get(step) if isinstance(inner, dict) else None
            if inner is None:
                return f"required field {'.'.join(path)!r} is missing"
        return None

    def find_departures(self, column: Column, declared: Columns) -> ContractResult | None:
        """Find what departs in values, all with one schema or all without. Return None if nothing does."""
        schema = column.schema
        return self._compare_texts(column, declared) if schema is None else self._compare_schema(column, schema)

    def _compare_schema(self, column: Column, schema: Schema) -> ContractResult | None:
        departures: dict[str, Departure] = {}
        type = self._keep_fitting(schema.type, Struct(self.columns), "", departures)
        if not departures:
            return None
        everything = list(departures.values())
        if type is None:
            result = ContractResult(column)
            for row in np.flatnonzero(column.data.is_valid().to_numpy(zero_copy_only=False)).tolist():
                result.note(row, everything)
                if row not in result.forbidden:
                    result.refused.setdefault(row, everything[0].reason)
            return result
        detail = schema.detail and _drop_details(schema.detail, schema.type, departures)
        pruned = replace(schema, type=type, file=None, detail=detail)
        array, holding = column.array.cast(arrow_type(type)), find_holders(column.array, departures)
        schemas = Schemas((pruned,), np.zeros(len(array), np.int64), (array,), np.arange(len(array)))
        result = ContractResult(replace(column, schemas=schemas))
        for row in np.flatnonzero(np.logical_or.reduce(list(holding.values()))).tolist():
            result.note(row, [departures[path] for path, rows in holding.items() if rows[row]])
        return result

    def _keep_fitting(self, seen: Type, recorded: Type, path: str, departures: dict[str, Departure]) -> Type | None:
        """Return the type of a schema without the fields that depart. Return None if nothing is left."""
        match seen, recorded:
            case Struct(fields), Struct(columns):
                left: Columns = {}
                for name, type in fields.items():
                    here = join_path(path, name)
                    if name not in columns and name != PLACEHOLDER and self.on_new_field != "evolve":
                        departures[here] = self._refuse_new(here)
                    elif (inner := self._keep_fitting(type, columns.get(name, type), here, departures)) is not None:
                        left[name] = inner
                    else:
                        _depart_wholly(here, departures)
                return Struct(left) if left else None
            case (List(), List()) | (Map(), Map()):
                inner = self._keep_fitting(item_of(seen), item_of(recorded), f"{path}[]", departures)
                return inner and (List(inner) if isinstance(seen, List) else Map(inner))
        if self.on_type_change == "evolve" or try_unify(recorded, seen) == recorded:
            return seen
        departures[path] = self._refuse_change(path, seen, recorded)
        return None

    def _compare_value(self, declared: Columns, path: str, value: msgspec.Raw, recorded: Type) -> Departure | None:
        """Return how a field of a value without a schema departs; the types of declared ones are required elsewhere."""
        if bytes(value) == b"null":
            return None
        if recorded == UNKNOWN:
            return self._refuse_new(path) if self.on_new_field != "evolve" else None
        if self.on_type_change == "evolve" or any(_is_within(path, write_name(name)) for name in declared):
            return None
        begin = bytes(value)[:1]
        if (begin == b"{" and fields_of(recorded)) or (begin == b"[" and fields_of(item_of(recorded))):
            return None  # what is inside of it is looked at by itself
        try:
            decoded = decode_checked_json(value)
            seen = infer_type(decoded, path)
        except Conflict as conflict:  # as of a list of several types
            return Departure(path, self.on_type_change, f"field {path!r} fits no column: {conflict}")
        with suppress(Conflict):
            is_held = drop_empty(widen({path: recorded}, {path: seen}, {})) == {path: recorded}
            # A column that evolves takes what holds nothing as null; here it is of another type.
            if is_held and not any(field.has_column for field in find_unplaced(decoded, recorded)):
                return None
        return self._refuse_change(path, seen, recorded)

    def _compare_texts(self, column: Column, declared: Columns) -> ContractResult | None:
        texts = column.data.to_pylist()
        result = ContractResult(column)
        for row, text in enumerate(texts):
            if text is not None:
                departures: list[Departure] = []
                value = self._drop_fields(msgspec.Raw(text.strip()), Struct(self.columns), "", declared, departures)
                texts[row] = bytes(value)
                result.note(row, departures)
        result.column = replace(column, data=pa.array(texts, pa.binary()))
        return result if result.refused or result.forbidden or result.fields_left_out else None

    def _drop_fields(
        self, value: msgspec.Raw, recorded: Type, path: str, declared: Columns, departures: list[Departure]
    ) -> msgspec.Raw:
        """Return JSON without the fields that depart, an item of a list as null; the same object if none departs.

        Adds to `departures`.
        """

        def keep(inner: msgspec.Raw, column: Type, path: str) -> msgspec.Raw | None:
            departure = self._compare_value(declared, path, inner, column)
            if departure is None:
                return self._drop_fields(inner, column, path, declared, departures)
            departures.append(departure)
            return None

        begin = bytes(value)[:1]
        if begin == b"{" and (columns := fields_of(recorded)):
            members = _decode_members(value)
            kept = {
                name: keep(inner, columns.get(name, UNKNOWN), join_path(path, name)) for name, inner in members.items()
            }
            if all(kept[name] is inner for name, inner in members.items()):
                return value
            return msgspec.Raw(_encode({name: inner for name, inner in kept.items() if inner is not None}))
        if begin == b"[" and (item := item_of(recorded)) != UNKNOWN:
            items = _decode_items(value)
            kept_items = [keep(inner, item, f"{path}[]") for inner in items]
            is_same = all(new is old for new, old in zip(kept_items, items, strict=True))
            return value if is_same else msgspec.Raw(_encode(kept_items))
        return value

    def _refuse_new(self, path: str) -> Departure:
        return Departure(path, self.on_new_field, f"field {path!r} is new, and schema.on_new_field allows none")

    def _refuse_change(self, path: str, seen: Type, recorded: Type) -> Departure:
        types = f"is {format_type(seen)}, its column is {format_type(recorded)}"
        reason = f"field {path!r} {types}, and schema.on_type_change allows none"
        return Departure(path, self.on_type_change, reason)


def _depart_wholly(path: str, departures: dict[str, Departure]) -> None:
    """Replace the departures inside of a field, of which nothing is left, by the first as one of the whole field."""
    inside = [inner for inner in departures if _is_within(inner, path)]
    reasons = [departures.pop(inner) for inner in inside]
    if reasons:
        departures[path] = reasons[0]._replace(path=path)


def _is_within(path: str, outer: str) -> bool:
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))


def _drop_details(of: Detail, type: Type, dropped_fields: Collection[str], path: str = "") -> Detail:
    """Return the detail of a column without the fields that are dropped."""
    if not of.inner:
        return of
    fields = fields_of(type)
    if not fields:
        here = f"{path}[]"
        return structs.replace(of, inner=(_drop_details(of.inner[0], item_of(type), dropped_fields, here),))
    inner = tuple(
        _drop_details(each, field, dropped_fields, join_path(path, name))
        for each, (name, field) in zip(of.inner, fields.items(), strict=True)
        if join_path(path, name) not in dropped_fields
    )
    return structs.replace(of, inner=inner)


def make_validator(rules: Mapping[str, Any]) -> jsonschema_rs.Validator:
    """Return what checks a decoded value by a JSON Schema of any draft, which refers to nothing but itself.

    Raises:
        ValueError: they are not a JSON Schema, or refer to another document.
        ConfigurationError: jsonschema-rs is not installed.
    """
    with require_extra("jsonschema", "schema.rules"):
        import jsonschema_rs
    try:
        return jsonschema_rs.validator_for(dict(rules), retriever=_refuse_other)
    except jsonschema_rs.ValidationError as error:
        raise ValueError(
            f"is not a JSON Schema: {error.message}{_format_place(error.instance_path)}"[:_SHOWN]
        ) from None


def _find_broken(rules: bytes, value: Any) -> str | None:
    """Return why a decoded value does not fit, without the value itself. Return None if it fits."""
    validator = _validator(rules)
    try:
        if validator.is_valid(value):
            return None
        error = next(iter(validator.iter_errors(value)))
    except ValueError:  # the validator's limit of recursion
        return "nested too deeply"
    rule = "/".join(map(str, error.schema_path))
    return f"rules: {rule} does not hold{_format_place(error.instance_path)}"[:_SHOWN]


def _format_place(path: list[str | int]) -> str:
    return f" at {'.'.join(map(str, path))}" if path else ""


def _refuse_other(address: str) -> NoReturn:
    raise ValueError(f"{address} is another document: write it into $defs")


@functools.lru_cache(maxsize=64)
def _validator(schema: bytes) -> jsonschema_rs.Validator:
    return make_validator(msgspec.json.decode(schema))
