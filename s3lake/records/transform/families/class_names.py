"""Every transform and predicate by its type: the connector's class name, whole or short, or Iggy's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from s3lake.records.transform.families import (
    casts,
    connect,
    debezium,
    iceberg,
    iggy,
    lenses,
    timestamps,
    tombstones,
    topic_names,
)
from s3lake.records.transform.families.java_packages import (
    AIVEN,
    CONFLUENT,
    CONNECT,
    CUSTENBORDER,
    DEBEZIUM,
    ICEBERG,
    LENSES,
)
from s3lake.records.transform.families.unsupported import find_remedy
from s3lake.records.transform.step.option_reader import OptionReader
from s3lake.records.transform.step.record import Step, later
from s3lake.text.option_values import did_you_mean, parse_bool

Factory = Callable[..., Step]
_OF_A_SIDE: dict[str, Factory] = {
    "Cast": casts.cast,
    "ExtractField": connect.extract_field,
    "Flatten": connect.flatten,
    "HeaderFrom": connect.header_from,
    "HoistField": connect.hoist_field,
    "InsertField": connect.insert_field,
    "MaskField": connect.mask_field,
    "ReplaceField": connect.replace_field,
    "SetSchemaMetadata": connect.set_schema_metadata,
    "TimestampConverter": timestamps.convert_timestamp,
}
_OF_A_RECORD: dict[str, Factory] = {
    "DropHeaders": connect.drop_headers,
    "Filter": connect.drop_record,
    "InsertHeader": connect.insert_header,
    "RegexRouter": connect.regex_router,
    "TimestampRouter": connect.timestamp_router,
    "ValueToKey": connect.value_to_key,
}
_OF_LENSES: dict[str, Factory] = {
    "InsertFieldTimestampHeaders": partial(lenses.insert_time_headers, origin="field", rolling=False),
    "InsertRecordTimestampHeaders": partial(lenses.insert_time_headers, origin="record", rolling=False),
    "InsertRollingFieldTimestampHeaders": partial(lenses.insert_time_headers, origin="field", rolling=True),
    "InsertRollingRecordTimestampHeaders": partial(lenses.insert_time_headers, origin="record", rolling=True),
    "InsertRollingWallclock": partial(lenses.insert_wallclock, rolling=True),
    "InsertRollingWallclockHeaders": partial(lenses.insert_time_headers, origin="wallclock", rolling=True),
    "InsertWallclock": partial(lenses.insert_wallclock, rolling=False),
    "InsertWallclockDateTimePart": lenses.insert_wallclock_part,
    "InsertWallclockHeaders": partial(lenses.insert_time_headers, origin="wallclock", rolling=False),
    "RenameHeader": lenses.rename_header,
    "TimestampConverter": lenses.insert_timestamp_header,
}
_OF_DEBEZIUM: dict[str, Factory] = {
    "ExtractNewRecordState": debezium.extract_new_record_state,
    "HeaderToValue": debezium.header_to_value,
    "UnwrapFromEnvelope": debezium.extract_new_record_state,
}
_OF_ICEBERG: dict[str, Factory] = {
    "CopyValue": iceberg.copy_value,
    "DebeziumTransform": iceberg.unwrap_debezium,
    "KafkaMetadataTransform": iceberg.insert_metadata,
}
_OF_OTHERS: dict[str, Factory] = {
    f"{AIVEN}ExtractTopicFromSchemaName$Value": topic_names.extract_topic_from_schema_name,
    f"{AIVEN}MakeTombstone": tombstones.make_tombstone,
    f"{AIVEN}TombstoneHandler": tombstones.handle_tombstones_of_aiven,
    f"{CONFLUENT}ExtractTopic$Header": topic_names.extract_topic_of_header,
    f"{CONFLUENT}TombstoneHandler": tombstones.handle_tombstones_of_confluent,
    **{
        f"{package}{name}${side.title()}": partial(make, side=side)
        for package, name, make in (
            (AIVEN, "ExtractTopic", topic_names.extract_topic_of_aiven),
            (CONFLUENT, "Drop", tombstones.drop_side),
            (CONFLUENT, "ExtractTopic", topic_names.extract_topic_of_confluent),
            (CUSTENBORDER, "SchemaNameToTopic", topic_names.name_topic_by_schema),
        )
        for side in ("key", "value")
    },
}
TRANSFORMS: dict[str, Factory] = {
    **{f"{CONNECT}{name}$Key": partial(make, side="key") for name, make in _OF_A_SIDE.items()},
    **{f"{CONNECT}{name}$Value": partial(make, side="value") for name, make in _OF_A_SIDE.items()},
    **{f"{CONNECT}{name}": make for name, make in _OF_A_RECORD.items()},
    **{f"{LENSES}{name}": make for name, make in _OF_LENSES.items()},
    **{f"{DEBEZIUM}{name}": make for name, make in _OF_DEBEZIUM.items()},
    **{f"{package}{name}": make for package in ICEBERG for name, make in _OF_ICEBERG.items()},
    **_OF_OTHERS,
    "iggy.add_fields": iggy.add_fields,
    "iggy.delete_fields": iggy.delete_fields,
    "iggy.filter_fields": iggy.filter_fields,
    "iggy.unwrap_envelope": iggy.unwrap_envelope,
    "iggy.update_fields": iggy.update_fields,
}
PREDICATES: dict[str, Factory] = {
    f"{CONNECT}predicates.HasHeaderKey": connect.has_header_key,
    f"{CONNECT}predicates.RecordIsTombstone": connect.record_is_tombstone,
    f"{CONNECT}predicates.TopicNameMatches": connect.topic_name_matches,
}
_CONVERTED = "s3lake reads JSON, text and bytes: take it out, and set the sink's converter"
_NO_MEANING = {
    "InsertSourcePartitionOrOffsetValue": "it reads a source connector's partition, and this is a sink: take it out, "
    "or use InsertField with partition.field and offset.field",
    "iggy.avro_convert": f"{_CONVERTED} and format",
    "iggy.flat_buffer_convert": _CONVERTED,
    "iggy.proto_convert": _CONVERTED,
}


class UnknownTypeError(ValueError):
    """The transform or predicate does not exist; the message names the nearest."""


def build_step(
    type_name: str,
    settings: Mapping[str, Any],
    factories: Mapping[str, Factory] = TRANSFORMS,
    position: int = 0,
    *,
    exact: bool = False,
) -> tuple[Step, list[str]]:
    """Build the transform (or, of PREDICATES, the predicate) of a type. Return it and what the user should know.

    Raises:
        UnknownTypeError: there is no such type.
        OptionError: an option is missing, unknown or wrong.
    """
    name = find_full_name(type_name, factories)
    options = OptionReader(settings, position, exact=exact)
    step = factories[name](options)
    if factories is TRANSFORMS and name.startswith(CONNECT):
        step = _read_null_default(step, options)
    options.finish()
    return step, options.notices


def _read_null_default(step: Step, options: OptionReader) -> Step:
    """Read whether null becomes the default of its schema first (KIP-1040); here it stays null unless that is asked."""
    fills = options.parse("replace.null.with.default", parse_bool, "false")
    if not fills or step.typed is None:
        return step
    side = "key" if "key" in step.reads else "value"
    return replace(step, typed=later("connect", "apply_after_defaults", side, step.typed))


def shorten(type_name: str) -> str:
    """Return a type without its package."""
    return type_name if type_name.startswith("iggy.") else type_name.rpartition(".")[2]


def list_short_names(factories: Mapping[str, Factory]) -> list[str]:
    """Return the short name of each type once; one that has both sides is `Name$Key|$Value`."""
    names = dict.fromkeys(map(shorten, factories))
    both = {name.removesuffix("$Key") for name in names if name.endswith("$Key")}
    shown = (name for name in names if name.removesuffix("$Value") not in both or not name.endswith("$Value"))
    return [f"{name}|$Value" if name.endswith("$Key") else name for name in shown]


def find_full_name(type_name: str, factories: Mapping[str, Factory]) -> str:
    """Return the whole name of a type.

    Raises:
        UnknownTypeError: there is no such type, or several.
    """
    if type_name in factories:
        return type_name
    name = shorten(type_name)
    if name in _NO_MEANING and type_name in (name, LENSES + name):
        raise UnknownTypeError(f"{type_name} has no meaning here: {_NO_MEANING[name]}")
    remedy = None if f"{type_name}$Key" in factories else find_remedy(type_name)
    if remedy and "." in type_name:
        raise UnknownTypeError(f"{type_name} is not a transform of s3lake: {remedy}")
    names = [shorten(full_name) for full_name in factories]
    if f"{name}$Key" in names:
        other = f", or {LENSES}{name} (Lenses')" if f"{LENSES}{name}" in factories else ""
        raise UnknownTypeError(f"{type_name!r} does not name what it changes: write {name}$Value or {name}$Key{other}")
    same = [full_name for full_name in factories if shorten(full_name) == type_name]
    if len({factories[full_name] for full_name in same}) > 1:
        raise UnknownTypeError(f"{type_name!r} is in several packages, which differ: write {' or '.join(same)}")
    if same:
        return same[0]
    if remedy:
        raise UnknownTypeError(f"{type_name} is not a transform of s3lake: {remedy}")
    role = "predicate" if factories is PREDICATES else "transform"
    package = type_name.removesuffix(name)
    is_of_others = package != "" and not any(full_name.startswith(package) for full_name in factories)
    hint = "" if is_of_others and name not in names else did_you_mean(name, names)
    own = "; what a class of your own does, write with sql" if is_of_others else ""
    raise UnknownTypeError(
        f"{type_name!r} is not a {role} of s3lake; {hint}there are: {', '.join(list_short_names(factories))}{own}"
    )
