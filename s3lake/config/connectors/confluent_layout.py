"""Object keys of Confluent's S3 sink: its directories and partitioners as a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from s3lake.config.connectors.connect import escape_braces
from s3lake.config.draft import Draft
from s3lake.config.keys import Keys, Value
from s3lake.config.report import Setting
from s3lake.text.options import did_you_mean

_FIELDS_AND_TIME = "FieldAndTimeBasedPartitioner"
_PARTITIONERS = {
    "DefaultPartitioner": "default",
    "FieldPartitioner": "field",
    "TimeBasedPartitioner": "time",
    "DailyPartitioner": "daily",
    "HourlyPartitioner": "hourly",
    _FIELDS_AND_TIME: "fields and time",
}
SECONDS = 1000
"""In milliseconds, as the connector counts."""
_DAY, _HOUR = 86_400_000, 3_600_000


def put_layout(keys: Keys, sink: Draft) -> None:
    """Put the template of object keys."""
    top = keys.text("topics.dir", "topics")
    slash, plus = keys.text("directory.delim", "/"), keys.text("file.delim", "+")
    width = keys.integer("filename.offset.zero.pad.width", 10, 0, 64)
    affix = keys.choice("s3.schema.partition.affix.type", {"NONE": 0, "PREFIX": -1, "SUFFIX": 1}, "NONE")
    partitioner = read_partitioner(keys)
    encoded, fields_setting = _partition_template(keys, sink, partitioner, slash.value)
    schema = "schema_name={schema}"
    parts = {0: [encoded], -1: [schema, encoded], 1: [encoded, schema]}[affix.value]
    between = escape_braces(slash.value)
    offset = f"{{offset:0{width.value}}}" if width.value else "{offset}"
    name = escape_braces(plus.value).join(("{topic}", "{partition}", offset))

    def key(parts: Sequence[str]) -> str:
        return between.join(["{topic}", *parts, name])

    source = fields_setting or partitioner.setting or slash.setting or plus.setting or width.setting or top.setting
    above = ""
    if slash.value == "/":
        sink.put("prefix", top.map(str.strip))
    elif top.value.strip():
        above = escape_braces(top.value) + between
    sink.put("layout.template", above + key(parts), source)
    sink.put("layout.missing", "null")
    directory = keys.text("tombstone.encoded.partition", "tombstone")
    nulls = keys.get("behavior.on.null.values")
    if nulls is not None and nulls.value.lower() == "write":
        sink.put("layout.tombstones", above + key([escape_braces(directory.value)]), directory.setting or nulls)


def read_partitioner(keys: Keys) -> Value[str]:
    """Return the kind of partitioner."""
    return read_class(keys, "partitioner.class", _PARTITIONERS, "DefaultPartitioner")


def read_class(keys: Keys, key: str, classes: Mapping[str, str], default: str) -> Value[str]:
    """Return what a class of the connector means, by its simple name."""
    setting = keys.get(key)
    if setting is None or not setting.value:
        return Value(classes[default])
    name = setting.value.rpartition(".")[2]
    ours = setting.value.startswith("io.confluent.connect.") or name == _FIELDS_AND_TIME
    if name not in classes or ("." in setting.value and not ours):
        near = did_you_mean(name, list(classes))
        keys.wrong(setting, f"{setting.masked_value} is not known; {near}use one of: {', '.join(classes)}")
        return Value(classes[default])
    return Value(classes[name], setting)


def _partition_template(keys: Keys, sink: Draft, partitioner: Value[str], delimiter: str) -> tuple[str, Setting | None]:
    """Return the template between topic and file name, and the setting that it comes from."""
    fields = keys.names("partition.field.name")
    for field in fields.value:
        if not all(step.strip() for step in field.split(".")) and fields.setting is not None:
            keys.wrong(fields.setting, f"{field!r} is not a field: a step of the path is empty")
    pattern = keys.text("path.format")
    fielded = partitioner.value == "fields and time"
    if fielded and partitioner.setting is not None:
        keys.report.notice(
            partitioner.setting, "is taken as one of several of that name: NAME=VALUE/… and then path.format"
        )
        partitioner = Value("time", partitioner.setting)
    duration = keys.integer("partition.duration.ms", -1, 1 if partitioner.value == "time" else -1)
    locale, timezone = keys.text("locale"), keys.text("timezone")
    _extractor(keys, sink)
    if timezone.value:
        sink.put("layout.time.timezone", timezone)
    if locale.value:
        sink.put("layout.time.locale", locale)
    _unused(keys, Value("fields and time") if fielded else partitioner, (fields, pattern, duration, locale, timezone))
    if partitioner.value == "default":
        return "partition={partition}", None
    named = escape_braces(delimiter).join(f"{escape_braces(field)}={{field:{field}}}" for field in fields.value)
    if (fielded or partitioner.value == "field") and not fields.value and partitioner.setting is not None:
        keys.wrong(partitioner.setting, "the partitioner needs fields; add partition.field.name=NAME,NAME")
    if fielded:
        dated = _time(keys, sink, partitioner, delimiter, (pattern, duration, locale, timezone))
        return f"{named}{escape_braces(delimiter)}{dated}", pattern.setting or fields.setting
    if partitioner.value == "field":
        return named or "partition={partition}", fields.setting
    return _time(keys, sink, partitioner, delimiter, (pattern, duration, locale, timezone)), pattern.setting


def _unused(keys: Keys, partitioner: Value[str], options: Sequence[Value[Any]]) -> None:
    """Note options of partitioners that are not used: people who write `path.format` expect directories of dates."""
    fields, *timed = options
    if fields.setting and partitioner.value not in ("field", "fields and time"):
        keys.report.notice(fields.setting, "has no effect without partitioner.class=FieldPartitioner")
    if partitioner.value not in ("default", "field"):
        return
    scheduled = keys.get("rotate.schedule.interval.ms")
    for option in timed:
        if option.setting is None or (option.setting.key == "timezone" and scheduled is not None):
            continue
        if option.setting.key == "path.format":
            message = "is read by nothing without partitioner.class=TimeBasedPartitioner: keys have no dates"
        else:
            message = "has no effect without a time based partitioner"
        keys.report.notice(option.setting, message)
    extractor = keys.get("timestamp.extractor")
    if extractor is not None:
        keys.report.notice(extractor, "has no effect without a time based partitioner")


def _time(
    keys: Keys,
    sink: Draft,
    partitioner: Value[str],
    delimiter: str,
    options: tuple[Value[str], Value[int], Value[str], Value[str]],
) -> str:
    pattern, duration, locale, timezone = options
    quoted = delimiter if not delimiter.isalpha() else f"'{delimiter}'"
    steps = ["'year'=YYYY", "'month'=MM", "'day'=dd", "'hour'=HH"]
    for value, taken in ((locale, "en"), (timezone, "UTC")):
        if not value.value:
            key = "locale" if value is locale else "timezone"
            keys.report.notice(value.setting or partitioner.setting, f"{key} is missing; {taken} is taken")
    if partitioner.value in ("daily", "hourly"):
        for option in (pattern, duration):
            if option.setting:
                keys.report.notice(option.setting, f"has no effect: the {partitioner.value} partitioner has its own")
        sink.put(
            "layout.time.duration", (_DAY if partitioner.value == "daily" else _HOUR) / SECONDS, partitioner.setting
        )
        return f"{{time:{quoted.join(steps[: 3 if partitioner.value == 'daily' else 4])}}}"
    if keys.get("partition.duration.ms") is None:
        keys.report.notice(partitioner.setting, f"partition.duration.ms is missing; {_HOUR} (an hour) is taken")
    sink.put("layout.time.duration", (duration.value if duration.value > 0 else _HOUR) / SECONDS, duration.setting)
    path = pattern.value.removesuffix(delimiter)
    if path.count("'") % 2:
        keys.report.notice(pattern.setting, "a quote is not closed; it is closed at the end, as the connector does")
        path = pattern.value + "'"
    if not path:
        if pattern.setting:
            keys.wrong(
                pattern.setting, "is empty; write a pattern such as 'year'=YYYY/'month'=MM/'day'=dd, or take it out"
            )
        default = quoted.join(steps)
        keys.report.notice(partitioner.setting, f"path.format is missing; {default} is taken")
        return f"{{time:{default}}}"
    return f"{{time:{path}}}"


def _extractor(keys: Keys, sink: Draft) -> None:
    sources = {"Wallclock": "wallclock", "Record": "record", "RecordField": "field"}
    setting = keys.get("timestamp.extractor")
    name = setting.value.rpartition(".")[2].split("$")[-1].removesuffix("TimestampExtractor") if setting else ""
    chosen = sources.get(name, "wallclock")
    if setting is not None and setting.value and name not in sources:
        near = did_you_mean(name, list(sources))
        keys.wrong(setting, f"{setting.masked_value} is not known; {near}use one of: {', '.join(sources)}")
    sink.put("layout.time.source", chosen, setting)
    field = keys.text("timestamp.field", "timestamp")
    if chosen == "field":
        sink.put("layout.time.field", field)
    elif field.setting:
        keys.report.notice(field.setting, "has no effect without timestamp.extractor=RecordField")
