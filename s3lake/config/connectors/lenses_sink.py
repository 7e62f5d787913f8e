"""Lenses' S3 sink: `connect.s3.*`, and KCQL statements of which each becomes a sink."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from s3lake.config.connector_keys import PREFIX, ConnectorKey, Keys, choice, same, whole
from s3lake.config.connectors import connect_keys, converter_keys, lenses_kcql, s3_credentials
from s3lake.config.connectors.connect_keys import escape_braces
from s3lake.config.connectors.lenses_kcql import KcqlError, Statement
from s3lake.config.draft import ConfigDraft, Draft
from s3lake.config.overrides import prefix_of
from s3lake.config.report import Report, Setting, Value
from s3lake.text import expressions
from s3lake.text.option_values import did_you_mean, parse_bool, suggest

CLASSES = (
    "io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector",
    "com.datamountaineer.streamreactor.connect.aws.s3.sink.S3SinkConnector",
    "io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnectorDeprecated",
)
_P = "connect.s3."
_ACCESS, _SECRET = f"{_P}aws.access.key", f"{_P}aws.secret.key"
_CODECS = {
    **{name.upper(): name for name in ("snappy", "gzip", "lzo", "lz4", "brotli", "bzip2", "zstd", "deflate", "xz")},
    "UNCOMPRESSED": "none",
    "LZ0": "lzo",
}
_KEYS = (
    ConnectorKey(f"{_P}aws.region", "s3.region"),
    ConnectorKey(f"{_P}custom.endpoint", "s3.endpoint_url"),
    ConnectorKey(
        f"{_P}pool.max.connections", "s3.max_pool_connections", lambda text: max(0, whole(-1)(text)) or 50, 50
    ),
    ConnectorKey(f"{_P}http.max.retries", "s3.retries.max_attempts", whole(1), 5),
    ConnectorKey(f"{_P}http.retry.interval", "s3.retries.backoff_ms", whole(0), 50),
    ConnectorKey(f"{_P}skip.null.values", "nulls", lambda text: "skip" if parse_bool(text) else "write", "write"),
    ConnectorKey(f"{_P}exactly.once.enable", "exactly_once", parse_bool),
    ConnectorKey(f"{_P}indexes.name", "index.prefix"),
)
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
    *(ConnectorKey(f"flush.{name}", f"flush.{name}", whole(1)) for name in ("count", "size", "interval")),
    ConnectorKey("padding.type", "layout.padding.type", choice(_PADDINGS)),
    ConnectorKey("padding.char", "layout.padding.char"),
    ConnectorKey("padding.length.partition", "layout.padding.partition", whole(0)),
    ConnectorKey("padding.length.offset", "layout.padding.offset", whole(0)),
)
_STAGING = "files are streamed to S3; beyond memory_budget they go to the temporary directory"
_COLLECTED = "the index is one object a commit, and `s3lake clean` removes old ones"
_NO_EFFECT = {
    f"{_P}local.tmp.directory": _STAGING,
    f"{_P}seek.max.files": "the index has the offsets of each topic-partition",
    f"{_P}http.socket.timeout": "timeouts are boto3's own",
    f"{_P}http.connection.timeout": "timeouts are boto3's own",
    f"{_P}delete.mode": "nothing is deleted while records are landed",
    f"{_P}log.metrics": "every run's records, files and seconds are in Dagster",
    f"{_P}task.index": "s3lake has no tasks",
    "offset.flush.interval.ms": "has no effect: flush.interval in PROPERTIES sets when files are closed",
    "connect.progress.enabled": "every run's progress is in Dagster",
    f"{_P}indexes.gc.interval.seconds": _COLLECTED,
    f"{_P}indexes.gc.batch.size": _COLLECTED,
    f"{_P}indexes.gc.sweep.enabled": _COLLECTED,
    f"{_P}indexes.gc.sweep.interval.seconds": _COLLECTED,
    f"{_P}indexes.gc.sweep.min.age.seconds": _COLLECTED,
    f"{_P}indexes.gc.sweep.max.reads": _COLLECTED,
}
_RENAMED = {
    "aws.region": f"{_P}aws.region",
    "aws.access.key": f"{_P}aws.access.key",
    "aws.secret.key": f"{_P}aws.secret.key",
    "aws.auth.mode": f"{_P}aws.auth.mode",
    "aws.custom.endpoint": f"{_P}custom.endpoint",
    "aws.vhost.bucket": f"{_P}path.style.access",
    f"{_P}vhost.bucket": f"{_P}path.style.access",  # in Lenses it means that, in spite of its name
}


def read_connector(settings: Sequence[Setting], report: Report, environment: Mapping[str, str]) -> ConfigDraft:
    """Read the settings of a connector into a draft.

    Raises:
        ConfigurationError: it is invalid; one line per error.
    """
    plain, each = [_plain(setting, environment, report) for setting in settings], Draft()
    keys = connect_keys.open_keys(plain, report, _RENAMED, (f"{_P}aws.auth.mode",))
    name, topics = connect_keys.name(keys), connect_keys.topics(keys)
    converter_keys.put_converters(keys, each)
    connect_keys.put_framework(keys, each)
    keys.put(each, _KEYS)
    _put_store(keys, each)
    _put_policy(keys, each)
    _put_padding(keys, each)
    sinks = _read_sinks(keys, each, name, topics, environment)
    for sink in sinks:
        _put_codec(keys, sink)
        _put_compatibility(keys, sink)
    keys.get(f"{_P}disable.flush.count")
    index = keys.text(f"{_P}indexes.name").value or ".indexes"
    once = keys.boolean(f"{_P}exactly.once.enable", True).value
    draft = connect_keys.finish_draft(keys, sinks, environment, _NO_EFFECT)
    assert draft.connector is not None
    draft.connector = replace(draft.connector, lenses=True, indexes=index if once else None)
    return draft


def _plain(setting: Setting, environment: Mapping[str, str], report: Report) -> Setting:
    """Return a setting with its key in lower case, and with `$NAME` replaced, the manual's form for credentials."""
    if setting.key.lower().startswith(_P):
        setting = replace(setting, key=setting.key.lower())
    match = re.fullmatch(r"\$(\w+)", setting.value)
    if match is None or setting.key not in (_ACCESS, _SECRET):
        return setting
    if not environment.get(match[1]):
        report.error(setting, f"environment variable {match[1]} is not set; set it")
        return setting
    report.secrets.add(environment[match[1]])
    return replace(setting, value=environment[match[1]], secret=True)


def _put_store(keys: Keys, sink: Draft) -> None:
    mode = keys.choice(f"{_P}aws.auth.mode", {"Default": False, "Credentials": True}, "Default")
    if mode.value:
        s3_credentials.put_pair(keys, sink, _ACCESS, _SECRET)
        if not keys.has(_ACCESS) and not keys.has(_SECRET):
            keys.error(mode.setting, f"'Credentials' needs {_ACCESS} and {_SECRET}; add them, or write Default")
    else:
        message = f"is not used without {_P}aws.auth.mode=Credentials: {s3_credentials.LOCAL_CHAIN}"
        keys.note(message, keys.text(_ACCESS), keys.text(_SECRET))
    has_endpoint = sink.get("s3.endpoint_url") is not None
    sink.put("s3.path_style", keys.boolean(f"{_P}path.style.access", has_endpoint))


def _put_codec(keys: Keys, sink: Draft) -> None:
    codec = keys.choice(f"{_P}compression.codec", _CODECS, "UNCOMPRESSED")
    sink.put("format.codec", codec)
    keys.put(sink, [ConnectorKey(f"{_P}compression.level", "format.level", whole(1, 9))])
    form = sink.get("format.type")
    if codec.value == "gzip" and form in ("json", "csv", "text", "bytes"):
        message = f"files end in .{form}.gz; the connector writes .gz"
        connect_keys.note_deviation(keys, sink, codec.setting, message, "layout.extension", ".gz")


def _put_compatibility(keys: Keys, sink: Draft) -> None:
    """Put which schemas share files: all but `default` need files of the newest one, in which nothing is lost."""
    detectors = {"default": "none", "version": "backward", "compatibility": "backward"}
    detector = keys.choice(f"{_P}schema.change.detector", detectors, "default")
    newest = keys.boolean(f"{_P}latest.schema.optimization.enabled", False)
    connect_keys.put_compatibility(keys, sink, detector)
    connect_keys.put_compatibility(keys, sink, newest.map(lambda asked: "backward" if asked else "none"))


def _put_policy(keys: Keys, sink: Draft) -> None:
    """Put the error policy. THROW is s3lake's own way: a refused record fails its micro-batch at once."""
    policy = keys.choice(f"{_P}error.policy", same("THROW", "NOOP", "RETRY"), "THROW")
    tries, pause = keys.integer(f"{_P}max.retries", 20, 0), keys.integer(f"{_P}retry.interval", 60_000, 0)
    if policy.value == "RETRY":
        sink.put("errors.max_retries", tries)
        sink.put("errors.retry_interval", pause.map(connect_keys.seconds))
        keys.note("only transient errors are retried; a refused record would be refused again", policy)
        if tries.value == 0:
            keys.note("0 means no retries; Lenses itself would try for ever", tries)
        return
    if policy.value == "NOOP":
        sink.put("errors.tolerance", "all", policy.setting)
        keys.note("nothing is dropped: refused records become dead letters (errors.tolerance all)", policy)


def _read_sinks(
    keys: Keys, each: Draft, name: Value[str], topics: connect_keys.Topics, environment: Mapping[str, str]
) -> list[Draft]:
    """Return a sink for each statement; without one `each`, so that all other keys are checked too."""
    query = keys.require(f"{_P}kcql", "INSERT INTO bucket:prefix SELECT * FROM topic")
    if query.setting is None or not query.value:
        return [each]
    try:
        statements = lenses_kcql.parse_kcql(query.value)
    except KcqlError as error:
        keys.report.error(query.setting.at(error.offset), str(error))
        return [each]
    if not statements:
        keys.error(query.setting, "holds no statement; write INSERT INTO bucket:prefix SELECT * FROM topic")
    topics_read = _read_topics(statements, topics, query.setting, keys.report)
    called = _names(name.value, statements)
    if len(statements) > 1:
        keys.note(f"each statement is a sink with an index of its own: {', '.join(called)}", query)
    sinks = []
    for statement, title, (names, regex) in zip(statements, called, topics_read, strict=True):
        sink = each.copy()
        sink.put("name", title, name.setting)
        if regex is not None:
            sink.put("topics_regex", regex, topics.regex.setting)
        else:
            sink.put("topics", list(names), topics.names.setting or query.setting)
        if not keys.has(f"{PREFIX}sql.select") and f"{prefix_of(title)}SQL_SELECT" not in environment:
            _refuse_aliases(statement, query.setting, keys.report)
        _put_statement(sink, statement, query.setting, keys, alone=len(statements) == 1)
        sinks.append(sink)
    return sinks or [each]


def _names(name: str, statements: Sequence[Statement]) -> list[str]:
    """Return one name for each statement; their order changes it only if they read the same topic."""
    if len(statements) == 1:
        return [name]
    names: list[str] = []
    count: Counter[str] = Counter()
    for statement in statements:
        part = "all" if statement.topic == "*" else re.sub(r"[^A-Za-z0-9_-]+", "-", statement.topic)
        count[part] += 1
        names.append(f"{name}-{part}" + (f"-{count[part]}" if count[part] > 1 else ""))
    return names


def _read_topics(
    statements: Sequence[Statement], topics: connect_keys.Topics, query: Setting, report: Report
) -> list[tuple[tuple[str, ...], str | None]]:
    """Return the topics of each statement: names, or an expression. A topic's own statement beats `*`."""
    names, regex = topics.names, topics.regex
    own = {statement.topic for statement in statements} - {"*"}
    is_wild = any(statement.topic == "*" for statement in statements)
    for statement in statements:
        topic, at = statement.topic, query.at(statement.offsets["topic"])
        if topic == "*":
            continue
        if names.value and topic not in names.value:
            near = did_you_mean(topic, names.value)
            report.error(at, f"FROM {topic}: the topic is not among topics; {near}add it there, or take this out")
        elif regex.value and not _matches(regex.value, topic):
            message = f"topics.regex {regex.value!r} does not match it; change one of them"
            report.error(at, f"FROM {topic}: {message}")
    rest = tuple(topic for topic in names.value if topic not in own)
    if rest and not is_wild:
        fix = "write a statement for each, or one FROM `*`"
        report.error(names.setting, f"no KCQL statement reads {', '.join(map(repr, rest))}; {fix}")
    if regex.value and not is_wild:
        fix = "write a statement FROM `*` for the topics that have none"
        report.error(regex.setting, f"topics.regex needs a statement for every topic that it can match; {fix}")
    if is_wild and names.value and not rest:
        report.error(names.setting, "every topic has a statement of its own; take the statement FROM `*` out")
    expression = regex.value
    if own and expression:
        expression = f"(?!(?:{'|'.join(map(re.escape, sorted(own)))})$)(?:{expression})"
    of_all = (rest, expression or None)
    return [of_all if statement.topic == "*" else ((statement.topic,), None) for statement in statements]


def _matches(expression: str, topic: str) -> bool:
    """Return whether an expression matches a topic; True if it is not valid: the model reports why."""
    try:
        return expressions.compile_pattern(expression).matches(topic)
    except (re.error, expressions.PatternTimeoutError):
        return True


def _put_statement(sink: Draft, statement: Statement, query: Setting, keys: Keys, *, alone: bool) -> None:
    """Put a statement of the setting `query` into its sink; some of the connector's keys have the same meaning.

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
            message = f"{name.upper()} {does}: the connector writes every record as it is, as documented"
            key = f"s3lake.sql.{name}" if alone else f"{prefix_of(sink.get('name'))}SQL_{name.upper()}"
            remedy = f"{message}; to have it, write {key}={text}"
            report.notice(at(part), remedy, (str(sink.get("name")), f"sql.{name}"))
    form = (statement.format or "JSON").upper()
    if form not in _FORMATS:
        report.error(at("format"), f"STOREAS {statement.format}: no such format; {suggest(form, _FORMATS)}")
    sink.put("format.type", _FORMATS.get(form, "json"), at("format") if statement.format else None)
    if form == "CSV":
        message = "a file begins with a header line, as documented; the connector writes none"
        connect_keys.note_deviation(keys, sink, at("format"), message, "format.header", "false")
    if statement.partition_by:
        sink.put("layout.partition_by", list(map(_element, statement.partition_by)), at("partition_by"))
    _put_properties(sink, statement, query, keys)


def _refuse_aliases(statement: Statement, query: Setting, report: Report) -> None:
    """Report elements that only the SELECT list makes: it is disregarded, so every record would be in `[missing]`."""
    aliases = lenses_kcql.read_aliases(statement.columns)
    for name in [path[0] for path in statement.partition_by if path[0] in aliases]:
        remedy = f"write {PREFIX}sql.select={statement.columns} to have it"
        if aliases[name]:
            remedy = f"write PARTITIONBY {aliases[name]}, or {remedy}"
        message = f"PARTITIONBY {name}: SELECT is disregarded, as documented, so no record has it; {remedy}"
        report.error(query.at(statement.offsets["partition_by"]), message)


def _element(path: Sequence[str]) -> str:
    if path[0] == "_date":
        return ".".join(path)
    return ".".join(f"`{step}`" if "." in step else step for step in path)


def _put_properties(sink: Draft, statement: Statement, query: Setting, keys: Keys) -> None:
    settings = [
        Setting(stated.name, stated.value, replace(query.at(stated.offset), key=f"{query.key}: {stated.name}"))
        for stated in statement.properties.values()
    ]
    for stated in filter(lambda stated: stated.clause, statement.properties.values()):
        instead = f"write PROPERTIES('{stated.name}'={stated.value})"
        keys.report.notice(query.at(stated.offset), f"{stated.clause} is a clause of Lenses 4 and 5; {instead}")
    own, padding = Keys(settings, keys.report), sink.get("layout.padding")
    for setting in own.with_prefix("padding.") if padding else ():
        own.error(setting, f"is given next to {_P}padding.*; take one of them out")
    single = sink.get("format.type") == "bytes"
    sink.put("flush", {**connect_keys.FLUSH, "count": 1} if single else connect_keys.FLUSH)
    own.put(sink, _PROPERTIES)
    unlimited = keys.boolean(f"{_P}disable.flush.count", False)
    if unlimited.value and not single:
        sink.put("flush.count", None, unlimited.setting)
    _put_envelope(sink, own)
    suffix = own.text("key.suffix")
    for namer in filter(None, map(own.get, ("store.file.namer", "store.file.namer.param"))):
        message = "a Java class cannot name files here; write s3lake.layout.template"
        own.error(namer, f"{namer.masked_value}: {message}")
    include = own.boolean("partition.include.keys", bool(statement.partition_by))
    message = "files are named after their first offset, as documented; the connector names the last one"
    if statement.partitioned:
        sink.put("layout.template", None)  # the elements are the connector's own
        sink.put("layout.suffix", suffix)
        if include.setting:
            sink.put("layout.include_keys", include)
        connect_keys.note_deviation(keys, sink, query, message, "layout.connector_names", "true")
    else:
        if include.setting:
            own.error(include.setting, "has no effect with NOPARTITION, which makes no directories; take it out")
        setting = replace(query, place=query.at(statement.offsets["partition_by"]))
        offset = _number(sink, "offset", "offset", 12)
        template = f"{{topic}}({_number(sink, 'partition', 'partition', 0)}_{offset}){escape_braces(suffix.value)}"
        sink.put("layout.template", template, setting)
        last = template.replace("{offset", "{last_offset")
        connect_keys.note_deviation(keys, sink, setting, message, "layout.template", last)
    own.report_unused([sink], refuse_unknown=True)


def _number(sink: Draft, name: str, length: str, default: int) -> str:
    configured = sink.get(f"layout.padding.{length}")
    width = default if configured is None else configured
    return f"{{{name}:{width}}}" if width and sink.get("layout.padding.type") != "none" else f"{{{name}}}"


def _put_padding(keys: Keys, sink: Draft) -> None:
    """Put the padding of all statements."""
    strategy = keys.choice(f"{_P}padding.strategy", {**_PADDINGS, "": "left"}, "LeftPad")
    length = keys.integer(f"{_P}padding.length", 12, -1)
    if strategy.setting or length.setting:
        sink.put("layout.padding.type", strategy)
        sink.put("layout.padding.offset", length.map(lambda width: 12 if width == -1 else width))


def _put_envelope(sink: Draft, own: Keys) -> None:
    on = own.boolean("store.envelope", False)
    fields = {name: own.boolean(f"store.envelope.fields.{name}", True) for name in _ENVELOPE}
    settings = [field.setting for field in fields.values() if field.setting is not None]
    kept = [name for name, field in fields.items() if field.value]
    missing = [f"store.envelope.fields.{name}" for name, field in fields.items() if field.setting is None]
    if settings and not on.value:
        own.error(settings[0], "has no effect without the envelope; write 'store.envelope'=true, or take it out")
    elif settings and missing:
        own.error(settings[0], f"all four fields are given, or none; add {', '.join(missing)}")
    elif not kept:
        own.error(on.setting, "every field of the envelope is false; set one to true, or 'store.envelope' to false")
    elif on.value:
        sink.put("envelope.style", "record", on.setting)
        sink.put("envelope.fields", kept, on.setting)
