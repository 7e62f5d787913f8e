"""Every transform by its type: the connector's class name, whole or short, or Iggy's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from s3lake.text.options import did_you_mean
from s3lake.transform import iggy, lenses, routing, times
from s3lake.transform.casts import Cast
from s3lake.transform.fields import (
    ExtractField,
    Flatten,
    HeaderFrom,
    HoistField,
    InsertField,
    MaskField,
    ReplaceField,
    SetSchemaMetadata,
    ValueToKey,
)
from s3lake.transform.lenses import InsertTimestampHeaders
from s3lake.transform.options import OptionError, Options
from s3lake.transform.record import Side, Step

_CONNECT = "org.apache.kafka.connect.transforms."
_LENSES = "io.lenses.connect.smt.header."
_PREDICATES = f"{_CONNECT}predicates."

_SIDED: dict[str, Callable[[Options, Side], Step]] = {
    "Cast": Cast.of,
    "ExtractField": ExtractField.of,
    "Flatten": Flatten.of,
    "HeaderFrom": HeaderFrom.of,
    "HoistField": HoistField.of,
    "InsertField": InsertField.of,
    "MaskField": MaskField.of,
    "ReplaceField": ReplaceField.of,
    "TimestampConverter": times.TimestampConverter.of,
}


def _sided(make: Callable[[Options, Side], Step], side: Side) -> Callable[[Options], Step]:
    return lambda options: make(options, side)


_TRANSFORMS: dict[str, Callable[[Options], Step]] = {
    **{f"{_CONNECT}{name}$Key": _sided(make, "key") for name, make in _SIDED.items()},
    **{f"{_CONNECT}{name}$Value": _sided(make, "value") for name, make in _SIDED.items()},
    f"{_CONNECT}DropHeaders": routing.DropHeaders.of,
    f"{_CONNECT}Filter": lambda _: routing.Filter(),
    f"{_CONNECT}InsertHeader": routing.InsertHeader.of,
    f"{_CONNECT}RegexRouter": routing.RegexRouter.of,
    f"{_CONNECT}SetSchemaMetadata$Key": SetSchemaMetadata.of,
    f"{_CONNECT}SetSchemaMetadata$Value": SetSchemaMetadata.of,
    f"{_CONNECT}TimestampRouter": routing.TimestampRouter.of,
    f"{_CONNECT}ValueToKey": ValueToKey.of,
    f"{_LENSES}InsertFieldTimestampHeaders": partial(InsertTimestampHeaders.of, origin="field", rolling=False),
    f"{_LENSES}InsertRecordTimestampHeaders": partial(InsertTimestampHeaders.of, origin="record", rolling=False),
    f"{_LENSES}InsertRollingFieldTimestampHeaders": partial(InsertTimestampHeaders.of, origin="field", rolling=True),
    f"{_LENSES}InsertRollingRecordTimestampHeaders": partial(InsertTimestampHeaders.of, origin="record", rolling=True),
    f"{_LENSES}InsertRollingWallclock": lenses.InsertWallclock.rolling,
    f"{_LENSES}InsertRollingWallclockHeaders": partial(InsertTimestampHeaders.of, origin="wallclock", rolling=True),
    f"{_LENSES}InsertWallclock": lenses.InsertWallclock.of,
    f"{_LENSES}InsertWallclockDateTimePart": lenses.InsertWallclockDateTimePart.of,
    f"{_LENSES}InsertWallclockHeaders": partial(InsertTimestampHeaders.of, origin="wallclock", rolling=False),
    f"{_LENSES}RenameHeader": lenses.RenameHeader.of,
    f"{_LENSES}TimestampConverter": lenses.TimestampConverter.of,
    "iggy.add_fields": iggy.AddFields.of,
    "iggy.delete_fields": iggy.DeleteFields.of,
    "iggy.filter_fields": iggy.FilterFields.of,
    "iggy.unwrap_envelope": iggy.UnwrapEnvelope.of,
    "iggy.update_fields": iggy.UpdateFields.of,
}
_PICKERS: dict[str, Callable[[Options], Step]] = {
    f"{_PREDICATES}HasHeaderKey": routing.HasHeaderKey.of,
    f"{_PREDICATES}RecordIsTombstone": lambda _: routing.RecordIsTombstone(),
    f"{_PREDICATES}TopicNameMatches": routing.TopicNameMatches.of,
}
_NO_MEANING = {
    f"{_LENSES}InsertSourcePartitionOrOffsetValue": "it reads a source connector's partition, and this is a sink: "
    "take it out, or use InsertField with partition.field and offset.field",
    "iggy.avro_convert": "s3lake reads JSON, text and bytes: take it out, and set the sink's converter and format",
    "iggy.flat_buffer_convert": "s3lake reads JSON, text and bytes: take it out, and set the sink's converter",
    "iggy.proto_convert": "s3lake reads JSON, text and bytes: take it out, and set the sink's converter",
}

TYPES = tuple(_TRANSFORMS)
"""The whole names of all transforms."""

PREDICATE_TYPES = tuple(_PICKERS)
"""The whole names of all predicates."""


class UnknownType(ValueError):
    """There is no such transform or predicate; the message names the nearest."""


class Built(NamedTuple):
    """A transform that is ready to run, and what the user should know of it."""

    step: Step
    notices: tuple[str, ...]


def build(type_name: str, options: Mapping[str, Any]) -> Built:
    """The transform of that type with those options.

    Raises:
        UnknownType: there is no such type.
        OptionError: an option is missing, unknown or wrong.
    """
    return _built(type_name, options, _TRANSFORMS, "transform")


def predicate(type_name: str, options: Mapping[str, Any]) -> Built:
    """The predicate of that type with those options.

    Raises:
        UnknownType: there is no such type.
        OptionError: an option is missing, unknown or wrong.
    """
    return _built(type_name, options, _PICKERS, "predicate")


def short(type_name: str) -> str:
    """A type without its package."""
    return type_name if type_name.startswith("iggy.") else type_name.rpartition(".")[2]


def _built(
    type_name: str, settings: Mapping[str, Any], table: dict[str, Callable[[Options], Step]], what: str
) -> Built:
    make = table[_whole(type_name, table, what)]
    options = Options(settings)
    step = make(options)
    options.finish()
    return Built(step, tuple(options.notices))


def _whole(type_name: str, table: Mapping[str, Any], what: str) -> str:
    if type_name in table:
        return type_name
    if type_name in _NO_MEANING or f"{_LENSES}{type_name}" in _NO_MEANING:
        raise UnknownType(
            f"{type_name} has no meaning here: {_NO_MEANING.get(type_name) or _NO_MEANING[_LENSES + type_name]}"
        )
    matching = [one for one in table if short(one) == type_name]
    names = [short(one) for one in table]
    name = short(type_name)
    if f"{name}$Key" in names:
        other = f", or {_LENSES}{name} (Lenses')" if f"{_LENSES}{name}" in table else ""
        raise UnknownType(f"{type_name!r} does not say of what: write {name}$Value or {name}$Key{other}")
    if len(matching) == 1:
        return matching[0]
    hint = did_you_mean(type_name if type_name.startswith("iggy.") else name, names)
    raise UnknownType(f"{type_name!r} is no {what} that s3lake has; {hint}there are: {_listed(names)}")


def _listed(names: list[str]) -> str:
    """Names, those of both sides once."""
    by_side = dict.fromkeys(name.replace("$Key", "$Key|$Value") for name in names if not name.endswith("$Value"))
    return ", ".join(by_side)


__all__ = ["PREDICATE_TYPES", "TYPES", "Built", "OptionError", "UnknownType", "build", "predicate", "short"]
