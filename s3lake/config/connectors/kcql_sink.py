"""One KCQL statement to one sink: its target, format, elements and PROPERTIES."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from s3lake.config.connectors import connect
from s3lake.config.connectors.connect import escape_braces
from s3lake.config.connectors.kcql import Statement
from s3lake.config.draft import Draft
from s3lake.config.keys import Keys
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
    _flush(sink, own, keys)
    _padding(sink, own, keys)
    _envelope(sink, own)
    suffix = own.text("key.suffix")
    for name in ("store.file.namer", "store.file.namer.param"):
        own.refused(name, "a class of Java's cannot name files here; write s3lake.layout.template")
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


def _flush(sink: Draft, own: Keys, keys: Keys) -> None:
    single = sink.get("format.type") == "bytes"
    sink.put("flush", {**connect.FLUSH, "count": 1} if single else connect.FLUSH)
    for name in ("count", "size", "interval"):
        value = own.integer(f"flush.{name}", 1, 1)
        if value.setting:
            sink.put(f"flush.{name}", value)
    unlimited = keys.boolean(f"{_P}disable.flush.count", False)
    if unlimited.value and not single:
        sink.put("flush.count", None, unlimited.setting)


def _padding(sink: Draft, own: Keys, keys: Keys) -> None:
    padding_type = own.choice("padding.type", _PADDINGS, "LeftPad")
    for path, value in (
        ("type", padding_type),
        ("char", own.text("padding.char")),
        ("partition", own.integer("padding.length.partition", 0, 0)),
        ("offset", own.integer("padding.length.offset", 12, 0)),
    ):
        if value.setting:
            sink.put(f"layout.padding.{path}", value)
    strategy = keys.choice(f"{_P}padding.strategy", {**_PADDINGS, "": "left"}, "LeftPad")
    length = keys.integer(f"{_P}padding.length", 12, -1)
    settings = [setting for setting in (strategy.setting, length.setting) if setting is not None]
    if settings and sink.get("layout.padding"):
        keys.wrong(settings[0], "is given next to padding.* in PROPERTIES; take one of them out")
    elif settings:
        sink.put("layout.padding.type", strategy)
        sink.put("layout.padding.offset", length.map(lambda width: 12 if width == -1 else width))


def _envelope(sink: Draft, own: Keys) -> None:
    on = own.boolean("store.envelope", False)
    fields = {name: own.boolean(f"store.envelope.fields.{name}", True) for name in _ENVELOPE}
    settings = [option.setting for option in fields.values() if option.setting is not None]
    kept = [name for name in _ENVELOPE if fields[name].value]
    if settings and not on.value:
        own.wrong(settings[0], "has no effect without the envelope; write 'store.envelope'=true, or take it out")
    elif settings and len(settings) < len(_ENVELOPE):
        missing = ", ".join(
            f"store.envelope.fields.{name}" for name, option in fields.items() if option.setting is None
        )
        own.wrong(settings[0], f"all four fields are given, or none; add {missing}")
    elif not kept and on.setting:
        own.wrong(on.setting, "every field of the envelope is false; set one to true, or 'store.envelope' to false")
    elif on.value:
        sink.put("envelope.style", "record", on.setting)
        sink.put("envelope.fields", kept, on.setting)
