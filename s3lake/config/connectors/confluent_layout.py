"""Object keys of Confluent's S3 sink: its directories and partitioners as a template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from s3lake.config.connectors.connect import escape_braces
from s3lake.config.draft import Draft
from s3lake.config.keys import Keys
from s3lake.config.report import Setting, Value
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
_TIMED = ("time", "daily", "hourly", "fields and time")
_DAY_S, _HOUR_S = 86_400, 3_600


def put_layout(keys: Keys, sink: Draft) -> None:
    """Put the template of object keys."""
    top = keys.text("topics.dir", "topics")
    slash, plus = keys.text("directory.delim", "/"), keys.text("file.delim", "+")
    width = keys.integer("filename.offset.zero.pad.width", 10, 0, 64)
    affix = keys.choice("s3.schema.partition.affix.type", {"NONE": 0, "PREFIX": -1, "SUFFIX": 1}, "NONE")
    partitioner = read_partitioner(keys)
    encoded, encoded_setting = _partition_template(keys, sink, partitioner, slash.value)
    schema = "schema_name={schema}"
    parts = {0: [encoded], -1: [schema, encoded], 1: [encoded, schema]}[affix.value]
    between = escape_braces(slash.value)
    offset = f"{{offset:0{width.value}}}" if width.value else "{offset}"
    name = escape_braces(plus.value).join(("{topic}", "{partition}", offset))

    def key(parts: Sequence[str]) -> str:
        return between.join(["{topic}", *parts, name])

    source = encoded_setting or partitioner.setting or slash.setting or plus.setting or width.setting or top.setting
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
        if not all(step.strip() for step in field.split(".")):
            keys.wrong(fields.setting, f"{field!r} is not a field: a step of the path is empty")
    by_field, by_time = "field" in partitioner.value, partitioner.value in _TIMED
    if not by_field:
        keys.note("has no effect without partitioner.class=FieldPartitioner", fields)
    elif not fields.value:
        keys.wrong(partitioner.setting, "the partitioner needs fields; add partition.field.name=NAME,NAME")
    if partitioner.value == "fields and time":
        keys.note("is taken as one of several of that name: NAME=VALUE/… and then path.format", partitioner)
    dated, dated_setting = _time_template(keys, sink, partitioner, delimiter)
    if not by_time:
        _note_unused_time(keys)
    parts = [f"{escape_braces(field)}={{field:{field}}}" for field in fields.value] if by_field else []
    parts += [dated] if by_time else []
    template = escape_braces(delimiter).join(parts) or "partition={partition}"
    return template, dated_setting or (fields.setting if by_field else None)


def _note_unused_time(keys: Keys) -> None:
    """Note options of time that no partitioner uses: people who write `path.format` expect directories of dates."""
    unused = ["partition.duration.ms", "locale", "timestamp.extractor"]
    if keys.get("rotate.schedule.interval.ms") is None:
        unused.append("timezone")
    keys.note("has no effect without a time based partitioner", *map(keys.text, unused))
    message = "is read by nothing without partitioner.class=TimeBasedPartitioner: keys have no dates"
    keys.note(message, keys.text("path.format"))


def _time_template(keys: Keys, sink: Draft, partitioner: Value[str], delimiter: str) -> tuple[str, Setting | None]:
    """Put the time of the partitioner. Return its part of the template, and the setting that it comes from."""
    pattern, locale, timezone = keys.text("path.format"), keys.text("locale"), keys.text("timezone")
    own_pattern = partitioner.value in ("time", "fields and time")
    duration = keys.integer("partition.duration.ms", -1, 1 if own_pattern else -1)
    _put_extractor(keys, sink)
    for name, option in (("timezone", timezone), ("locale", locale)):
        if option.value:
            sink.put(f"layout.time.{name}", option)
    if partitioner.value not in _TIMED:
        return "", None
    for name, option, taken in (("locale", locale, "en"), ("timezone", timezone, "UTC")):
        if not option.value:
            keys.report.notice(option.setting or partitioner.setting, f"{name} is missing; {taken} is taken")
    quoted = f"'{delimiter}'" if delimiter.isalpha() else delimiter
    steps = ["'year'=YYYY", "'month'=MM", "'day'=dd", "'hour'=HH"]
    if not own_pattern:
        keys.note(f"has no effect: the {partitioner.value} partitioner has its own", pattern, duration)
        is_daily = partitioner.value == "daily"
        sink.put("layout.time.duration", float(_DAY_S if is_daily else _HOUR_S), partitioner.setting)
        return f"{{time:{quoted.join(steps[: 3 if is_daily else 4])}}}", pattern.setting
    if duration.setting is None:
        message = f"partition.duration.ms is missing; {_HOUR_S * 1000} (an hour) is taken"
        keys.report.notice(partitioner.setting, message)
    sink.put("layout.time.duration", duration.map(lambda ms: ms / 1000 if ms > 0 else float(_HOUR_S)))
    path = pattern.value.removesuffix(delimiter)
    if path.count("'") % 2:
        keys.note("a quote is not closed; it is closed at the end, as the connector does", pattern)
        path = pattern.value + "'"
    if not path:
        message = "is empty; write a pattern such as 'year'=YYYY/'month'=MM/'day'=dd, or take it out"
        if pattern.setting:
            keys.wrong(pattern.setting, message)
        path = quoted.join(steps)
        keys.report.notice(partitioner.setting, f"path.format is missing; {path} is taken")
    return f"{{time:{path}}}", pattern.setting


def _put_extractor(keys: Keys, sink: Draft) -> None:
    sources = {"Wallclock": "wallclock", "Record": "record", "RecordField": "field"}
    extractor, field = keys.text("timestamp.extractor"), keys.text("timestamp.field", "timestamp")
    name = extractor.value.rpartition(".")[2].split("$")[-1].removesuffix("TimestampExtractor")
    if extractor.setting and name and name not in sources:
        near = did_you_mean(name, list(sources))
        message = f"{extractor.setting.masked_value} is not known; {near}use one of: {', '.join(sources)}"
        keys.wrong(extractor.setting, message)
    source = sources.get(name, "wallclock")
    sink.put("layout.time.source", source, extractor.setting)
    if source == "field":
        sink.put("layout.time.field", field)
    else:
        keys.note("has no effect without timestamp.extractor=RecordField", field)
