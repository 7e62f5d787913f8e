"""Lenses' S3 sink: `connect.s3.*`, and KCQL statements of which each becomes a sink."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from s3lake.config.connectors import connect, converters, credentials, kcql, kcql_sink, native_keys
from s3lake.config.connectors.kcql import KcqlError, Statement
from s3lake.config.draft import Connector, Draft, Sketch, join_drafts
from s3lake.config.keys import Keys, Value
from s3lake.config.report import Report, Setting
from s3lake.text import expressions
from s3lake.text.options import did_you_mean

CLASSES = (
    "io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector",
    "com.datamountaineer.streamreactor.connect.aws.s3.sink.S3SinkConnector",
)
_P = "connect.s3."
_ACCESS, _SECRET = f"{_P}aws.access.key", f"{_P}aws.secret.key"
_CODECS = {
    "UNCOMPRESSED": "none",
    "SNAPPY": "snappy",
    "GZIP": "gzip",
    "LZ0": "lzo",
    "LZO": "lzo",
    "LZ4": "lz4",
    "BROTLI": "brotli",
    "BZIP2": "bzip2",
    "ZSTD": "zstd",
    "DEFLATE": "deflate",
    "XZ": "xz",
}
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
    "aws.vhost.bucket": f"{_P}vhost.bucket",
}


def loads(settings: Sequence[Setting], report: Report, environment: Mapping[str, str]) -> Sketch:
    """Read the settings of a connector into a draft.

    Raises:
        ConfigurationError: it is invalid; one line per error.
    """
    keys = Keys([_variable(_lowered(one), environment, report) for one in settings], report)
    common, each = Draft(), Draft()
    keys.get("connector.class")
    for old, new in _RENAMED.items():
        keys.renamed(old, new)
    name, topics = connect.name(keys), connect.topics(keys)
    converters.put_converters(keys, each)
    connect.put_framework(keys, common, each)
    keys.no_effect(
        {"offset.flush.interval.ms": "has no effect: flush.interval in PROPERTIES says when files are closed"}
    )
    _store(keys, common)
    _behaviour(keys, each)
    sinks = _sinks(keys, each, name, topics)
    for sink in sinks or [Draft()]:  # keys are known even where no statement can be read
        _codec(keys, sink)
        _compatible(keys, sink)
    kcql_sink.claim_shared_keys(keys)
    keys.no_effect(_NO_EFFECT)
    native_keys.apply(keys, common, sinks, environment)
    keys.report_unknown()
    return join_drafts(common, sinks, report, _connector(keys))


def _connector(keys: Keys) -> Connector:
    """Return the connector with its index, which it keeps only for exactly once."""
    index = keys.text(f"{_P}indexes.name").value or ".indexes"
    once = keys.boolean(f"{_P}exactly.once.enable", True).value
    return replace(connect.connector(keys), lenses=True, indexes=index if once else None)


def _lowered(setting: Setting) -> Setting:
    lower = setting.key.lower()
    return replace(setting, key=lower) if lower.startswith(_P) else setting


def _variable(setting: Setting, environment: Mapping[str, str], report: Report) -> Setting:
    """Return a credential with `$NAME`, the manual's form of an environment variable, replaced."""
    match = re.fullmatch(r"\$(\w+)", setting.value)
    if match is None or setting.key not in (_ACCESS, _SECRET):
        return setting
    if not environment.get(match[1]):
        report.error(setting, f"environment variable {match[1]} is not set; set it")
        return setting
    report.secrets.add(environment[match[1]])
    return replace(setting, value=environment[match[1]], secret=True)


def _store(keys: Keys, common: Draft) -> None:
    mode = keys.choice(f"{_P}aws.auth.mode", {"Default": False, "Credentials": True}, "Default")
    if mode.value:
        credentials.pair(keys, common, _ACCESS, _SECRET)
        if mode.setting and not keys.has(_ACCESS) and not keys.has(_SECRET):
            keys.wrong(
                mode.setting, f"{mode.setting.masked_value} needs {_ACCESS} and {_SECRET}; add them, or write Default"
            )
    else:
        message = f"is not used: {credentials.LOCAL_CHAIN}; write {_P}aws.auth.mode=Credentials to use it"
        for key in (_ACCESS, _SECRET):
            if keys.has(key) and (setting := keys.get(key)) is not None:
                keys.wrong(setting, message)
    region, endpoint = keys.text(f"{_P}aws.region"), keys.text(f"{_P}custom.endpoint")
    if region.value:
        common.put("s3.region", region)
    if endpoint.value:
        common.put("s3.endpoint_url", endpoint)
    hosts, paths = keys.get(f"{_P}vhost.bucket"), keys.get(f"{_P}path.style.access")
    if hosts is not None:
        keys.report.notice(hosts, f"is path-style access in Lenses, in spite of its name; write {_P}path.style.access")
    if hosts is not None and paths is not None:
        keys.wrong(hosts, f"is given next to {_P}path.style.access; take it out")
    key = f"{_P}vhost.bucket" if hosts is not None else f"{_P}path.style.access"
    common.put("s3.path_style", keys.boolean(key, bool(endpoint.value)))
    pool = keys.integer(f"{_P}pool.max.connections", 50, -1)
    common.put("s3.max_pool_connections", pool.map(lambda count: 50 if count in (-1, 0) else count))
    common.put("s3.retries.max_attempts", keys.integer(f"{_P}http.max.retries", 5, 1))
    common.put("s3.retries.backoff_ms", keys.integer(f"{_P}http.retry.interval", 50, 0))


def _behaviour(keys: Keys, sink: Draft) -> None:
    skip = keys.boolean(f"{_P}skip.null.values", False)
    sink.put("nulls", skip.map(lambda yes: "skip" if yes else "write"))
    once = keys.boolean(f"{_P}exactly.once.enable", True)
    if once.setting:
        sink.put("exactly_once", once)
    index = keys.text(f"{_P}indexes.name")
    if index.value:
        sink.put("index.prefix", index)
    _policy(keys, sink)


def _compatible(keys: Keys, sink: Draft) -> None:
    """Put which schemas share files: all but `default` need files of the newest one, in which nothing is lost."""
    detectors = {"default": "none", "version": "backward", "compatibility": "backward"}
    detector = keys.choice(f"{_P}schema.change.detector", detectors, "default")
    newest = keys.boolean(f"{_P}latest.schema.optimization.enabled", False)
    connect.put_compatibility(keys, sink, detector)
    connect.put_compatibility(keys, sink, newest.map(lambda asked: "backward" if asked else "none"))


def _policy(keys: Keys, sink: Draft) -> None:
    """Put the error policy. THROW is s3lake's own way: a refused record fails its micro-batch at once."""
    policy = keys.choice(f"{_P}error.policy", {"THROW": "THROW", "NOOP": "NOOP", "RETRY": "RETRY"}, "THROW")
    tries, pause = keys.integer(f"{_P}max.retries", 20, 0), keys.integer(f"{_P}retry.interval", 60_000, 0)
    if policy.value == "RETRY":
        sink.put("errors.max_retries", tries)
        sink.put("errors.retry_interval", pause.map(connect.seconds))
        keys.report.notice(
            policy.setting, "only what may pass later is tried again; a refused record would be refused again"
        )
        if tries.setting is not None and tries.value == 0:
            keys.report.notice(tries.setting, "is none; Lenses itself would try for ever")
        return
    if policy.value == "NOOP":
        sink.put("errors.tolerance", "all", policy.setting)
        keys.report.notice(
            policy.setting, "nothing is dropped: refused records become dead letters (errors.tolerance all)"
        )
    for setting in (tries.setting, pause.setting):
        if setting is not None:
            keys.report.notice(setting, f"has no effect without {_P}error.policy=RETRY; s3lake's own retries apply")


def _sinks(keys: Keys, each: Draft, name: Value[str], topics: connect.Topics) -> list[Draft]:
    query = keys.required(f"{_P}kcql", "INSERT INTO bucket:prefix SELECT * FROM topic")
    if query.setting is None or not query.value:
        return []
    try:
        statements = kcql.parse(query.value)
    except KcqlError as error:
        keys.report.error(query.setting.at(error.offset), str(error))
        return []
    if not statements:
        keys.wrong(query.setting, "holds no statement; write INSERT INTO bucket:prefix SELECT * FROM topic")
    read = _read(statements, topics, query.setting, keys.report)
    called = _names(name.value, statements)
    if len(statements) > 1:
        message = f"each statement is a sink with an index of its own: {', '.join(called)}"
        keys.report.notice(query.setting, message)
    sinks = []
    for statement, title, source in zip(statements, called, read, strict=True):
        sink = each.copy()
        sink.put("name", title, name.setting)
        names, regex = source
        if regex is not None:
            sink.put("topics_regex", regex, topics.regex.setting)
        else:
            sink.put("topics", list(names), topics.names.setting or query.setting)
        kcql_sink.put_statement(sink, statement, query.setting, keys, alone=len(statements) == 1)
        sinks.append(sink)
    return sinks


def _names(name: str, statements: Sequence[Statement]) -> list[str]:
    """Return one name for each statement; their order changes it only if they read the same topic."""
    if len(statements) == 1:
        return [name]
    plain = [
        re.sub(r"[^A-Za-z0-9_-]+", "-", "all" if statement.topic == "*" else statement.topic)
        for statement in statements
    ]
    count: Counter[str] = Counter()
    names = []
    for part in plain:
        count[part] += 1
        names.append(f"{name}-{part}" + (f"-{count[part]}" if count[part] > 1 else ""))
    return names


def _read(
    statements: Sequence[Statement], topics: connect.Topics, query: Setting, report: Report
) -> list[tuple[tuple[str, ...], str | None]]:
    """Return the topics of each statement: names, or an expression. A topic's own statement beats `*`."""
    own = {statement.topic for statement in statements if statement.topic != "*"}
    wild = any(statement.topic == "*" for statement in statements)
    for statement in statements:
        if statement.topic == "*":
            continue
        at = query.at(statement.offsets["topic"])
        if topics.names.value and statement.topic not in topics.names.value:
            near = did_you_mean(statement.topic, topics.names.value)
            report.error(
                at, f"FROM {statement.topic}: the topic is not among topics; {near}add it there, or take this out"
            )
        elif topics.regex.value and not _matches(topics.regex.value, statement.topic):
            report.error(
                at, f"FROM {statement.topic}: topics.regex {topics.regex.value!r} does not match it; change one of them"
            )
    rest = tuple(topic for topic in topics.names.value if topic not in own)
    if rest and not wild:
        fix = "write a statement for each, or one FROM `*`"
        report.error(topics.names.setting, f"no KCQL statement reads {', '.join(map(repr, rest))}; {fix}")
    if topics.regex.value and not wild:
        fix = "write a statement FROM `*` for the topics that have none"
        report.error(topics.regex.setting, f"topics.regex needs a statement for every topic that it can match; {fix}")
    if wild and topics.names.value and not rest:
        report.error(topics.names.setting, "every topic has a statement of its own; take the statement FROM `*` out")
    expression = topics.regex.value
    if own and expression:
        expression = f"(?!(?:{'|'.join(map(re.escape, sorted(own)))})$)(?:{expression})"
    return [
        ((statement.topic,), None) if statement.topic != "*" else (rest, expression or None) for statement in statements
    ]


def _matches(expression: str, topic: str) -> bool:
    try:
        return expressions.compile_pattern(expression).matches(topic)
    except (re.error, expressions.PatternTimeoutError):
        return True  # the model says what is wrong with it


def _codec(keys: Keys, sink: Draft) -> None:
    codec = keys.choice(f"{_P}compression.codec", _CODECS, "UNCOMPRESSED")
    sink.put("format.codec", codec)
    level = keys.integer(f"{_P}compression.level", -1, 1, 9)
    if level.setting:
        sink.put("format.level", level)
    form = sink.get("format.type")
    if codec.value == "gzip" and form in ("json", "csv", "text", "bytes"):
        message = f"files end in .{form}.gz; the connector writes .gz"
        connect.note_deviation(keys, sink, codec.setting, message, "layout.extension", ".gz")
