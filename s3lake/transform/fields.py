"""Kafka Connect's transforms of fields, as they treat values without a schema.

A tombstone or null key passes InsertField, ReplaceField, ExtractField and Flatten unchanged; MaskField, ValueToKey and
HeaderFrom need an object, as they do in Connect. Where Connect silently loses a field (two of one name), the record is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from s3lake.transform.instants import Date, Instant, Time, Timestamp
from s3lake.transform.options import OptionError, Options
from s3lake.transform.paths import steps, value_at
from s3lake.transform.record import Record, Refusal, Side, SideStep, Step, header_text, shown

_NO_DEFAULTS = "values have no schema after they are unwrapped, so there are no defaults to put"


def no_defaults(options: Options) -> None:
    """`replace.null.with.default` is accepted by most of Connect's transforms."""
    options.without_meaning("replace.null.with.default", _NO_DEFAULTS)


@dataclass(frozen=True)
class InsertField(SideStep):
    """Parts of the record, or a constant, as fields; `fields` are (source, name)."""

    fields: tuple[tuple[str, str], ...]
    static: str

    @classmethod
    def of(cls, options: Options, side: Side) -> InsertField:
        inserted: list[tuple[str, str]] = []
        for source in ("topic", "partition", "offset", "timestamp", "static"):
            name = options.text(f"{source}.field")
            # Required or optional makes a difference to schemas only.
            name = name[:-1] if name.endswith(("!", "?")) else name
            if name:
                inserted.append((source, name))
        static = options.text("static.value")
        no_defaults(options)
        if not inserted:
            raise OptionError("no field is inserted; set topic.field, partition.field, offset.field, timestamp.field")
        if "static" in dict(inserted) and not options.given("static.value"):
            raise OptionError("static.value is missing; it is what static.field will hold", "static.value")
        return cls(side, tuple(inserted), static)

    def __call__(self, record: Record) -> None:
        if self.operand(record) is None:
            return
        value = dict(self.object_of(record))
        for source, name in self.fields:
            if source == "static":
                value[name] = self.static
            elif (inserted := getattr(record, source)) is not None:
                value[name] = inserted
        self.assign(record, value)


@dataclass(frozen=True)
class ReplaceField(SideStep):
    """Fields left out, kept, or given another name."""

    exclude: frozenset[str]
    include: frozenset[str]
    renames: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, options: Options, side: Side) -> ReplaceField:
        """Read its options; `blacklist` and `whitelist` are older names."""
        lists: dict[str, tuple[str, ...]] = {}
        for name, old in (("exclude", "blacklist"), ("include", "whitelist")):
            lists[name] = options.names(name)
            if options.given(old):
                if options.given(name):
                    raise OptionError(f"{old} is the old name of {name}: take one of them out", old)
                options.notices.append(f"{old} is called {name} today")
                lists[name] = options.names(old)
        renames = options.names("renames")
        pairs: dict[str, str] = {}
        for renaming in renames:
            before, _, after = renaming.partition(":")
            if not before or not after or ":" in after:
                raise OptionError(f"renames: {renaming!r} is no renaming; write old:new,old2:new2", "renames")
            if before in pairs or after in pairs.values():
                raise OptionError(f"renames: {renaming!r} names a field for the second time; take one out", "renames")
            pairs[before] = after
        no_defaults(options)
        if not lists["exclude"] and not lists["include"] and not pairs:
            raise OptionError("nothing is replaced; set exclude, include or renames", "exclude")
        return cls(side, frozenset(lists["exclude"]), frozenset(lists["include"]), tuple(pairs.items()))

    def __call__(self, record: Record) -> None:
        if self.operand(record) is None:
            return
        names = dict(self.renames)
        value = self.object_of(record)
        kept = [
            (names.get(name, name), renaming)
            for name, renaming in value.items()
            if name not in self.exclude and (not self.include or name in self.include)
        ]
        new = dict(kept)
        if len(new) != len(kept):
            twice = next(name for position, (name, _) in enumerate(kept) if name in dict(kept[:position]))
            raise Refusal(f"two fields would be called {twice!r}")
        self.assign(record, new)


@dataclass(frozen=True)
class MaskField(SideStep):
    """Fields emptied (0, false, empty text), or replaced by a constant of the same type."""

    fields: tuple[str, ...]
    replacement: str | None

    @classmethod
    def of(cls, options: Options, side: Side) -> MaskField:
        fields = options.needed_names("fields", "phone,address")
        replacement = options.text("replacement") if options.given("replacement") else None
        if replacement == "":
            raise OptionError("replacement is empty; leave it out for 0, false and empty text", "replacement")
        no_defaults(options)
        return cls(side, fields, replacement)

    def __call__(self, record: Record) -> None:
        value = dict(self.object_of(record))
        for name in self.fields:
            value[name] = self._masked(name, value.get(name))
        self.assign(record, value)

    def _masked(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if self.replacement is None and type(value) in _EMPTY:
            return _EMPTY[type(value)]
        if self.replacement is None:
            raise Refusal(f"field {name!r} is {shown(value, 'secret')}, which cannot be masked")
        try:
            match value:
                case str():
                    return self.replacement
                case bool() | Instant():
                    pass
                case int():
                    return _whole(self.replacement)
                case Decimal():
                    return _finite(self.replacement)
        except (ValueError, ArithmeticError):
            raise Refusal(
                f"field {name!r} is {shown(value, 'secret')}, but replacement {self.replacement!r} is none"
            ) from None
        raise Refusal(
            f"field {name!r} is {shown(value, 'secret')}, which takes no replacement: only numbers and texts do"
        )


_EMPTY: dict[type, Any] = {
    **{bool: False, int: 0, Decimal: Decimal("0.0"), str: "", list: [], dict: {}},
    **{kind: kind(0) for kind in (Date, Time, Timestamp)},
}


def _finite(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError
    return number


def _whole(text: str) -> int:
    """The number without its fraction, as Connect takes it, in 64 bits."""
    number = _finite(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError
    return int(number)


@dataclass(frozen=True)
class ValueToKey(Step):
    """A key of some of the value's fields."""

    fields: tuple[str, ...]

    @classmethod
    def of(cls, options: Options) -> ValueToKey:
        fields = options.needed_names("fields", "id")
        no_defaults(options)
        return cls(fields)

    reads = frozenset({"value"})
    writes = frozenset({"key"})

    def __call__(self, record: Record) -> None:
        if not isinstance(record.value, dict):
            raise Refusal(f"the value is {shown(record.value)}, a JSON object is needed")
        record.key = {name: record.value.get(name) for name in self.fields}


@dataclass(frozen=True)
class ExtractField(SideStep):
    """One field instead of the whole; null where it is missing."""

    path: tuple[str, ...]

    @classmethod
    def of(cls, options: Options, side: Side) -> ExtractField:
        field = options.needed_text("field", "id")
        version = options.choice("field.syntax.version", ("V1", "V2"), "V1")
        no_defaults(options)
        return cls(side, options.read("field", field, lambda text: steps(text, nested=version == "V2")))

    def __call__(self, record: Record) -> None:
        if self.operand(record) is not None:
            self.assign(record, value_at(self.object_of(record), self.path))


@dataclass(frozen=True)
class HoistField(SideStep):
    """An object with one field that holds the whole, whatever it was; a null too."""

    field: str

    @classmethod
    def of(cls, options: Options, side: Side) -> HoistField:
        return cls(side, options.needed_text("field", "line"))

    def __call__(self, record: Record) -> None:
        self.assign(record, {self.field: self.operand(record)})


@dataclass(frozen=True)
class Flatten(SideStep):
    """Fields of nested objects at the top, called after their path. Lists stay as they are."""

    delimiter: str

    @classmethod
    def of(cls, options: Options, side: Side) -> Flatten:
        return cls(side, options.text("delimiter", "."))

    def __call__(self, record: Record) -> None:
        if self.operand(record) is None:
            return
        flat: dict[str, Any] = {}
        for name, inner in self._leaves(self.object_of(record), ""):
            if name in flat:
                raise Refusal(f"two fields would be called {name!r}")
            flat[name] = inner
        self.assign(record, flat)

    def _leaves(self, value: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for name, inner in value.items():
            whole = f"{prefix}{self.delimiter}{name}" if prefix else name
            if isinstance(inner, dict):
                yield from self._leaves(inner, whole)
            else:
                yield whole, inner


@dataclass(frozen=True)
class HeaderFrom(SideStep):
    """Fields as headers: moved there, or copied."""

    fields: tuple[str, ...]
    headers: tuple[str, ...]
    move: bool

    @classmethod
    def of(cls, options: Options, side: Side) -> HeaderFrom:
        fields = options.needed_names("fields", "id")
        headers = options.needed_names("headers", "record_id")
        move = options.choice("operation", ("move", "copy")) == "move"
        no_defaults(options)
        if len(fields) != len(headers):
            message = f"headers: {len(headers)} names for {len(fields)} fields; each field needs the name of its header"
            raise OptionError(message, "headers")
        return cls(side, fields, headers, move)

    @property
    def writes(self) -> frozenset[str]:
        return frozenset({"headers", self.side} if self.move else {"headers"})

    def __call__(self, record: Record) -> None:
        value = self.object_of(record)
        for field, header in zip(self.fields, self.headers, strict=True):
            record.add(header, header_text(value.get(field)))
        if self.move:
            self.assign(record, {name: one for name, one in value.items() if name not in self.fields})


@dataclass(frozen=True)
class SetSchemaMetadata(Step):
    """Names and versions of schemas: values have none after they are unwrapped."""

    @classmethod
    def of(cls, options: Options) -> SetSchemaMetadata:
        for name in ("schema.name", "schema.version", "replace.null.with.default"):
            options.without_meaning(name, "files get their schema from the data, or from the sink's columns")
        return cls()

    def __call__(self, record: Record) -> None:
        """Nothing."""
