"""One KCQL statement to one sink: its target, format, elements and PROPERTIES."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from s3lake.config.connectors import connect
from s3lake.config.connectors.connect import escape_braces
from s3lake.config.connectors.kcql import Statement
from s3lake.config.draft import Draft
from s3lake.config.keys import Key, Keys, choice, whole
from s3lake.config.overrides import prefix_of
from s3lake.config.report import Setting
from s3lake.text.options import did_you_mean

_P = "connect.s3."
_FORMATS = {
    "JSON": "json",
    "AVRO": "avro",
    "PARQUET": "parquet",
    "CSV": "csv",
    "CSV_WITHHEADERS": "csv",
    "TEXT": "text",
    "BYTES": "bytes",
}
_PADDINGS = {"LeftPad": "left", "RightPad": "right", "NoOp": "none"}
_ENVELOPE = ("key", "value", "headers", "metadata")
_PROPERTIES = (
    *(Key(f"flush.{name}", f"flush.{name}", whole(1)) for name in ("count", "size", "interval")),
    Key("padding.type", "layout.padding.type", choice(_PADDINGS)),
    Key("padding.char", "layout.padding.char"),
    Key("padding.length.partition", "layout.padding.partition", whole(0)),
    Key("padding.length.offset", "layout.padding.offset", whole(0)),
)


def put_statement(sink: Draft, statement: Statement, query: Setting, keys: Keys, *, alone: bool) -> None:
    """Put what a statement of the setting `query` says into its sink; some of the connector's keys say the same.

    A notice names a key of the file if the statement is `alone`, else the variable of its sink.
    """

    def at(part: str) -> Setting:
        return replace(query, place=query.at(statement.offsets[part]))

    report = keys.report
    if "$" in statement.bucket or "$" in statement.prefix:
        target = statement.bucket + (f":{statement.prefix}" if statement.prefix else "")
        report.error(
            at("target"), f"{target!r} is a placeholder of the manual; write the bucket's and the prefix's names"
        )
    else:
        sink.put("bucket", statement.bucket, at("target"))
        sink.put("prefix", statement.prefix, at("target"))
    for part, name, text in (("columns", "select", statement.columns), ("where", "where", statement.where)):
        if text is not None:
            does = "leaves no field out" if name == "select" else "leaves no record out"
            message = f"{name.upper()} {does}: the connector writes every record as it is, as its document says"
            key = f"s3lake.sql.{name}" if alone else f"{prefix_of(sink.get('name'))}SQL_{name.upper()}"
            remedy = f"{message}; to have it, write {key}={text}"
            report.notice(at(part), remedy, (str(sink.get("name")), f"sql.{name}"))
    form = (statement.format or "JSON").upper()
    if form not in _FORMATS:
        near = did_you_mean(form, list(_FORMATS))
        report.error(
            at("format"), f"STOREAS {statement.format}: no such format; {near}use one of: {', '.join(_FORMATS)}"
        )
    sink.put("format.type", _FORMATS.get(form, "json"), at("format") if statement.format else None)
    if form == "CSV":
        message = "a file begins with a header line, as the document says; the connector writes none"
        connect.note_deviation(keys, sink, at("format"), message, "format.header", "false")
    if statement.partition_by:
        sink.put("layout.partition_by", list(map(_element, statement.partition_by)), at("partition_by"))
    _properties(sink, statement, query, keys)


def claim_shared_keys(keys: Keys) -> None:
    """The connector's keys that say the same for all statements are known."""
    for name in (f"{_P}disable.flush.count", f"{_P}padding.strategy", f"{_P}padding.length"):
        keys.get(name)


def _element(path: Sequence[str]) -> str:
    if path[0] == "_date":
        return ".".join(path)
    return ".".join(f"`{step}`" if "." in step else step for step in path)


def _properties(sink: Draft, statement: Statement, query: Setting, keys: Keys) -> None:
    for former in [stated for stated in statement.properties.values() if stated.clause]:
        message = f"{former.clause} is of older versions: write PROPERTIES('{former.name}'={former.value})"
        keys.report.notice(query.at(former.offset), message)
    own = Keys(
        [
            Setting(stated.name, stated.value, replace(query.at(stated.offset), key=f"{query.key}: {stated.name}"))
            for stated in statement.properties.values()
        ],
        keys.report,
    )
    single = sink.get("format.type") == "bytes"
    sink.put("flush", {**connect.FLUSH, "count": 1} if single else connect.FLUSH)
    own.put(sink, _PROPERTIES)
    unlimited = keys.boolean(f"{_P}disable.flush.count", False)
    if unlimited.value and not single:
        sink.put("flush.count", None, unlimited.setting)
    _put_padding(sink, keys)
    _put_envelope(sink, own)
    suffix = own.text("key.suffix")
    for namer in filter(None, map(own.get, ("store.file.namer", "store.file.namer.param"))):
        message = "a class of Java's cannot name files here; write s3lake.layout.template"
        own.wrong(namer, f"{namer.masked_value}: {message}")
    include = own.boolean("partition.include.keys", bool(statement.partition_by))
    if statement.partitioned:
        sink.put("layout.template", None)  # the elements are the connector's own
        sink.put("layout.suffix", suffix)
        if include.setting:
            sink.put("layout.include_keys", include)
        message = "files are named after their first offset, as the document says; the connector names the last one"
        connect.note_deviation(keys, sink, query, message, "layout.connector_names", "true")
    else:
        if include.setting:
            own.wrong(include.setting, "has no effect with NOPARTITION, which makes no directories; take it out")
        setting = replace(query, place=query.at(statement.offsets["partition_by"]))
        offset = _number(sink, "offset", "offset", 12)
        template = f"{{topic}}({_number(sink, 'partition', 'partition', 0)}_{offset}){escape_braces(suffix.value)}"
        sink.put("layout.template", template, setting)
        message = "files are named after their first offset, as the document says; the connector names the last one"
        last = template.replace("{offset", "{last_offset")
        connect.note_deviation(keys, sink, setting, message, "layout.template", last)
    own.report_unknown()


def _number(sink: Draft, name: str, length: str, default: int) -> str:
    configured = sink.get(f"layout.padding.{length}")
    width = default if configured is None else configured
    return f"{{{name}:{width}}}" if width and sink.get("layout.padding.type") != "none" else f"{{{name}}}"


def _put_padding(sink: Draft, keys: Keys) -> None:
    """Put the padding of all statements, which keys of the connector say."""
    strategy = keys.choice(f"{_P}padding.strategy", {**_PADDINGS, "": "left"}, "LeftPad")
    length = keys.integer(f"{_P}padding.length", 12, -1)
    setting = strategy.setting or length.setting
    if setting is not None and sink.get("layout.padding"):
        keys.wrong(setting, "is given next to padding.* in PROPERTIES; take one of them out")
    elif setting is not None:
        sink.put("layout.padding.type", strategy)
        sink.put("layout.padding.offset", length.map(lambda width: 12 if width == -1 else width))


def _put_envelope(sink: Draft, own: Keys) -> None:
    on = own.boolean("store.envelope", False)
    fields = {name: own.boolean(f"store.envelope.fields.{name}", True) for name in _ENVELOPE}
    settings = [field.setting for field in fields.values() if field.setting is not None]
    kept = [name for name, field in fields.items() if field.value]
    missing = [f"store.envelope.fields.{name}" for name, field in fields.items() if field.setting is None]
    if settings and not on.value:
        own.wrong(settings[0], "has no effect without the envelope; write 'store.envelope'=true, or take it out")
    elif settings and missing:
        own.wrong(settings[0], f"all four fields are given, or none; add {', '.join(missing)}")
    elif not kept:
        own.wrong(on.setting, "every field of the envelope is false; set one to true, or 'store.envelope' to false")
    elif on.value:
        sink.put("envelope.style", "record", on.setting)
        sink.put("envelope.fields", kept, on.setting)
