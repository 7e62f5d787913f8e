"""Keys of Kafka Connect itself, one set for every sink connector: topics, converters, errors, clients, transforms."""

from __future__ import annotations

import re
from dataclasses import dataclass

from s3lake.config.connectors import transforms
from s3lake.config.draft import Connector, Draft
from s3lake.config.keys import Keys, Value
from s3lake.config.report import Place, Setting
from s3lake.convert.converters import CONVERTERS
from s3lake.encode.formats import FORMATS
from s3lake.text import expressions

LARGEST_FILE = 80 * 10**9
FLUSH = {"count": 50_000, "size": 500_000_000, "interval": 3600.0, "merge": False}
"""The Lenses document's defaults, and what a connector's file means where it says nothing: no native default."""

_NO_EFFECT = {
    "config.action.reload": "values of secrets are read when a run starts",
    "offset.flush.timeout.ms": "offsets are committed with the files",
    "topics.exclude": "it is of sources",
    "tasks.max.enforce": "s3lake has no tasks",
    "connector.plugin.version": "s3lake has no plugins",
    "plugin.path": "s3lake has no plugins",
    "group.id": "offsets are in the index; no consumer group is used",
}
_CLIENT = re.compile(r"(security\.protocol|sasl\..+|ssl\..+|client\.id|client\.rack|client\.dns\.lookup)")
_QUEUE = "errors.deadletterqueue."
_OFFSETS = "offsets are in the index; no consumer group is used"
_OURS = {
    "group.id": _OFFSETS,
    "enable.auto.commit": _OFFSETS,
    "auto.commit.interval.ms": _OFFSETS,
    "group.instance.id": _OFFSETS,
    "max.poll.records": "Spark reads ranges of offsets",
    "max.poll.interval.ms": "no consumer group is used",
    "session.timeout.ms": "no consumer group is used",
    "heartbeat.interval.ms": "no consumer group is used",
    "partition.assignment.strategy": "no consumer group is used",
    "key.deserializer": "key.converter says how keys are read",
    "value.deserializer": "value.converter says how values are read",
}


@dataclass(frozen=True)
class Topics:
    """The topics of a connector: names, or a regular expression."""

    names: Value[tuple[str, ...]]
    regex: Value[str]


def escape_braces(text: str) -> str:
    """Return a text as a native template has it, with braces doubled."""
    return text.replace("{", "{{").replace("}", "}}")


def name(keys: Keys) -> Value[str]:
    """Return the connector's name, as a sink may be called."""
    given_name = keys.required("name", "events-to-s3")
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", given_name.value)
    if plain != given_name.value and given_name.setting is not None:
        keys.report.notice(
            given_name.setting, f"the sink, and its index, are called {plain!r}: letters, digits, '_' and '-'"
        )
    return Value(plain, given_name.setting)


def connector(keys: Keys) -> Connector:
    """Return the connector as Kafka Connect knows it."""
    return Connector(keys.text("name").value, group=keys.text("consumer.override.group.id").value)


def topics(keys: Keys) -> Topics:
    """Return `topics` or `topics.regex`."""
    names, regex = keys.names("topics"), keys.text("topics.regex")
    if bool(names.setting and names.value) == bool(regex.value):
        where = regex.setting or names.setting
        message = (
            "are both given; take one out" if names.value else "are both missing; add topics=NAME,NAME or topics.regex"
        )
        keys.report.error(where, f"topics and topics.regex {message}")
    return Topics(names, regex)


def put_name_and_topics(keys: Keys, sink: Draft) -> None:
    """Put name and topics of a connector that is one sink."""
    sink.put("name", name(keys))
    subscribed = topics(keys)
    sink.put(
        "topics_regex" if subscribed.regex.value else "topics",
        subscribed.regex if subscribed.regex.value else subscribed.names,
    )


def put_framework(keys: Keys, common: Draft, sink: Draft) -> None:
    """Put what Kafka Connect does for every connector: clients, refused records, tasks, transforms."""
    put_clients(keys, common, sink)
    put_errors(keys, sink)
    put_parallelism(keys, common)
    transforms.put_transforms(keys, sink)


def put_clients(keys: Keys, common: Draft, sink: Draft) -> None:
    """Put the address of Kafka and the properties of its clients; a sink connector begins where the log begins."""
    sink.put("from", "earliest")
    for prefix in ("consumer.override.", "consumer."):
        for setting in keys.with_prefix(prefix):
            option = setting.key.removeprefix(prefix)
            if prefix == "consumer." and option.startswith("override."):
                continue
            if option == "bootstrap.servers":
                common.put("kafka.bootstrap_servers", setting.value, setting)
            elif option == "auto.offset.reset":
                sink.put("from", "start" if setting.value.lower() == "latest" else "earliest", setting)
                if setting.value.lower() not in ("earliest", "latest", "none"):
                    keys.wrong(setting, f"{setting.masked_value} is not allowed; use one of: earliest, latest, none")
                if setting.value.lower() == "latest":
                    keys.report.notice(setting, "the first record is the first one of the hour `start`")
            elif option == "isolation.level":
                if setting.value != "read_committed":
                    keys.report.no_effect(setting, "only committed records are landed")
            elif option in _OURS:
                keys.report.no_effect(setting, _OURS[option])
            else:
                common.put(("kafka", "properties", option), setting.value, setting)
    for prefix in ("producer.", "admin."):
        for setting in keys.with_prefix(prefix):
            keys.report.no_effect(setting, "only dead letters are written to Kafka, acknowledged by all replicas")
    for prefix in ("security.", "sasl.", "ssl.", "client."):
        for setting in keys.with_prefix(prefix):
            if _CLIENT.fullmatch(setting.key):
                common.put(("kafka", "properties", setting.key), setting.value, setting)
            else:
                keys.report.notice(setting, "unknown key: nothing reads it here")


def put_errors(keys: Keys, sink: Draft) -> None:
    """Put how refused records are handled."""
    tolerance = keys.choice("errors.tolerance", {"none": "none", "all": "all"}, "none")
    sink.put("errors.tolerance", tolerance)
    queue = keys.text(f"{_QUEUE}topic.name")
    headers = keys.boolean(f"{_QUEUE}context.headers.enable", False)
    replicas = keys.integer(f"{_QUEUE}topic.replication.factor", 3, -1)
    if queue.value and queue.setting is not None and tolerance.value == "none":
        message = "nothing goes there without errors.tolerance=all: the first refused record fails its micro-batch"
        keys.report.notice(queue.setting, message)
    elif queue.value and queue.setting is not None:
        sink.put("errors.dead_letter_topic.name", queue)
        sink.put("errors.dead_letter_topic.context_headers", headers)
        sink.put("errors.dead_letter_topic.replication_factor", replicas)
        if _subscribed(keys, queue.value):
            keys.wrong(
                queue.setting, f"{queue.setting.masked_value} is a topic that the connector reads; name another one"
            )
    for setting in (headers.setting, replicas.setting):
        if setting is not None and not queue.value:
            keys.report.notice(setting, f"has no effect: no dead letter topic is named; {_QUEUE}topic.name does")
    _tried_again(keys, sink)
    _logged(keys, sink)
    keys.no_effect(_NO_EFFECT)


def _tried_again(keys: Keys, sink: Draft) -> None:
    """Put how long questions to the registry are tried again: nothing else can have another outcome."""
    timeout = keys.integer("errors.retry.timeout", 0, -1)
    delay = keys.integer("errors.retry.delay.max.ms", 60_000, 0)
    if timeout.setting is not None:
        sink.put("errors.retry_timeout", timeout.map(lambda ms: None if ms < 0 else seconds(ms)))
        told = "is for questions to the Schema Registry: what a record is refused for would be the same again"
        keys.report.notice(timeout.setting, told)
    if delay.setting is not None:
        sink.put("errors.retry_delay", delay.map(seconds))


def _logged(keys: Keys, sink: Draft) -> None:
    """Put what is logged of a refused record: its place, and never its content."""
    enabled = keys.boolean("errors.log.enable", False)
    places = keys.boolean("errors.log.include.messages", False)
    if enabled.value:
        sink.put("errors.log", "place" if places.value else "reason", enabled.setting)
    elif places.setting is not None:
        keys.report.notice(places.setting, "has no effect without errors.log.enable=true: nothing is logged")


def _subscribed(keys: Keys, topic: str) -> bool:
    """Return whether the connector reads that topic."""
    expression = keys.text("topics.regex").value
    try:
        matched = bool(expression) and expressions.compile_pattern(expression).matches(topic)
    except (re.error, expressions.PatternTimeoutError):
        matched = False  # the model says what is wrong with it
    return matched or topic in map(str.strip, keys.text("topics").value.split(","))


def seconds(milliseconds: int) -> float:
    return milliseconds / 1000


def put_parallelism(keys: Keys, common: Draft) -> None:
    """Put `tasks.max` as the number of cores that Spark takes."""
    tasks = keys.integer("tasks.max", 0, 1, 100_000)
    if tasks.setting is not None:
        common.put("spark.master", tasks.map(lambda count: f"local[{count}]"))


def put_compatibility(keys: Keys, sink: Draft, mode: Value[str]) -> None:
    """Put which schemas share files, where values have one and files too."""
    if mode.value == "none":
        return
    form, converter = str(sink.get("format.type") or "json"), str(sink.get("converter.value") or "json")
    if not FORMATS[form].tabular:
        keys.report.notice(mode.setting, f"has no effect with format {form}: its files have no schema")
    elif not CONVERTERS[converter].versioned:
        keys.report.notice(mode.setting, f"has no effect: values of {converter} have no schema, and columns grow")
    else:
        sink.put("schema.compatibility", mode)
        if mode.value == "forward":
            message = "fields that an older schema lacks are left out, as the connector does, and counted in each hour"
            keys.report.notice(mode.setting, message)


def note_deviation(keys: Keys, sink: Draft, at: Setting | Place | None, message: str, path: str, value: str) -> None:
    """Note that the document is followed where the connector does otherwise, unless the file sets `path`."""
    remedy = f"{message}: write s3lake.{path}={value} for that"
    keys.report.notice(at, remedy, (str(sink.get("name")), path))
