"""Keys of Kafka Connect itself, one set for every sink connector: topics, converters, errors, clients, transforms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from s3lake.config.connector_keys import ConnectorKey, Keys, milliseconds, put_native
from s3lake.config.draft import ConfigDraft, Connector, Draft, join_drafts
from s3lake.config.report import Place, Report, Setting, Value
from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.records.encode.formats import FORMATS
from s3lake.text.option_values import did_you_mean, suggest

FLUSH = {"count": 50_000, "size": 500_000_000, "interval": 3600.0, "merge": False}
"""The defaults of Lenses' documentation, and the meaning of a key that a connector's file lacks: no native default."""

_NO_EFFECT = {
    "config.action.reload": "values of secrets are read when a run starts",
    "offset.flush.timeout.ms": "offsets are committed with the files",
    "topics.exclude": "it is of sources",
    "tasks.max.enforce": "s3lake has no tasks",
    "connector.plugin.version": "s3lake has no plugins",
    "plugin.path": "s3lake has no plugins",
    "group.id": "offsets are in the index; no consumer group is used",
}
_CLIENT = ("bootstrap.servers", "security.protocol", "client.id", "client.rack", "client.dns.lookup")
"""Properties of Kafka's clients that a file may have without a prefix, next to all of `sasl.` and `ssl.`."""
_QUEUE = "errors.deadletterqueue."
_OFFSETS, _GROUP = "offsets are in the index; no consumer group is used", "no consumer group is used"
_OURS = {
    **dict.fromkeys(("group.id", "enable.auto.commit", "auto.commit.interval.ms", "group.instance.id"), _OFFSETS),
    **dict.fromkeys(("max.poll.interval.ms", "session.timeout.ms", "heartbeat.interval.ms"), _GROUP),
    "partition.assignment.strategy": _GROUP,
    "max.poll.records": "Spark reads ranges of offsets",
    "key.deserializer": "key.converter sets how keys are read",
    "value.deserializer": "value.converter sets how values are read",
}


@dataclass(frozen=True)
class Topics:
    """The topics of a connector: names, or a regular expression."""

    names: Value[tuple[str, ...]]
    regex: Value[str]


def escape_braces(text: str) -> str:
    """Return a text as a native template has it, with braces doubled."""
    return text.replace("{", "{{").replace("}", "}}")


def translate_template(
    keys: Keys, setting: Setting | None, text: str, pattern: re.Pattern[str], variables: Mapping[str, str]
) -> str:
    """Return a template as a native one: `pattern` finds its variables, `variables` maps each to a native one."""
    pieces, position = [], 0
    for match in pattern.finditer(text):
        variable = re.sub(r"\s", "", match[0])
        if variable not in variables:
            keys.error(setting, f"{match[0]} is unknown; {suggest(variable, variables)}")
        pieces += [escape_braces(text[position : match.start()]), variables.get(variable, "")]
        position = match.end()
    return "".join([*pieces, escape_braces(text[position:])])


_DECIDING = (
    *("connector.class", "transforms", "predicates", "key.converter.schemas.enable", "value.converter.schemas.enable"),
)


def open_keys(
    settings: Sequence[Setting], report: Report, renamed: Mapping[str, str] = {}, deciding: Sequence[str] = ()
) -> Keys:
    """Return the keys of a connector; keys of older versions have their new names."""
    keys = Keys(settings, report, (*_DECIDING, *deciding))
    keys.get("connector.class")
    for old, new in renamed.items():
        keys.rename(old, new)
    return keys


def finish_draft(
    keys: Keys, sinks: Sequence[Draft], environment: Mapping[str, str], no_effect: Mapping[str, str]
) -> ConfigDraft:
    """Put the file's settings after `s3lake.`, and report keys that are not read. Return the connector's draft."""
    keys.no_effect({**_NO_EFFECT, **no_effect})
    put_native(keys, sinks, environment)
    keys.report_unused(sinks)
    connector = Connector(keys.text("name").value, group=keys.text("consumer.override.group.id").value)
    return join_drafts(sinks, keys.report, connector)


def name(keys: Keys) -> Value[str]:
    """Return the connector's name, as a sink may be called."""
    name = keys.require("name", "events-to-s3")
    plain = name.map(lambda text: re.sub(r"[^A-Za-z0-9_-]+", "-", text))
    if plain.value != name.value:
        keys.note(f"the sink, and its index, are called {plain.value!r}: letters, digits, '_' and '-'", name)
    return plain


def topics(keys: Keys) -> Topics:
    """Return `topics` or `topics.regex`."""
    names, regex = keys.names("topics"), keys.text("topics.regex")
    if bool(names.value) == bool(regex.value):
        problem = "given; take one out" if names.value else "missing; add topics=NAME,NAME or topics.regex"
        keys.error(regex.setting or names.setting, f"topics and topics.regex are both {problem}")
    return Topics(names, regex)


def put_name_and_topics(keys: Keys, sink: Draft) -> None:
    """Put name and topics of a connector that is one sink."""
    sink.put("name", name(keys))
    subscribed = topics(keys)
    if subscribed.regex.value:
        sink.put("topics_regex", subscribed.regex)
    else:
        sink.put("topics", subscribed.names)


def put_framework(keys: Keys, sink: Draft) -> None:
    """Put what Kafka Connect does for every connector: clients, refused records, tasks, transforms."""
    _put_clients(keys, sink)
    _put_errors(keys, sink)
    tasks = keys.integer("tasks.max", 0, 1, 100_000)
    if tasks.setting is not None:
        sink.put("spark.master", tasks.map(lambda count: f"local[{count}]"))
    put_transforms(keys, sink)


def _put_clients(keys: Keys, sink: Draft) -> None:
    """Put the address of Kafka and the properties of its clients; a sink connector begins where the log begins."""
    sink.put("from", "earliest")
    plain = [*filter(None, map(keys.get, _CLIENT)), *keys.with_prefix("sasl."), *keys.with_prefix("ssl.")]
    overrides, of_worker = keys.with_prefix("consumer.override."), keys.with_prefix("consumer.")
    # The last one counts: what the connector overrides, then what it has without a prefix, then what its worker has.
    for setting in (*(setting for setting in of_worker if setting not in overrides), *plain, *overrides):
        option = setting.key.removeprefix("consumer.").removeprefix("override.")
        if option == "bootstrap.servers":
            sink.put("kafka.bootstrap_servers", setting.value, setting)
        elif option == "auto.offset.reset":
            begin = setting.value.lower()
            sink.put("from", "start" if begin == "latest" else "earliest", setting)
            if begin not in ("earliest", "latest", "none"):
                keys.error(setting, f"{setting.masked_value} is not allowed; use one of: earliest, latest, none")
            if begin == "latest":
                keys.report.notice(setting, "the first record is the first one of the hour `start`")
        elif option == "isolation.level":
            if setting.value != "read_committed":
                keys.report.no_effect(setting, "only committed records are landed")
        elif option in _OURS:
            keys.report.no_effect(setting, _OURS[option])
        else:
            sink.put(("kafka", "properties", option), setting.value, setting)
    for setting in (*keys.with_prefix("producer."), *keys.with_prefix("admin.")):
        keys.report.no_effect(setting, "only dead letters are written to Kafka, acknowledged by all replicas")


def _put_errors(keys: Keys, sink: Draft) -> None:
    """Put how refused records are handled, and how long the registry is asked again: nothing else can change."""
    tolerance = keys.choice("errors.tolerance", {"none": "none", "all": "all"}, "none")
    sink.put("errors.tolerance", tolerance)
    queue = keys.text(f"{_QUEUE}topic.name")
    headers = keys.boolean(f"{_QUEUE}context.headers.enable", False)
    replicas = keys.integer(f"{_QUEUE}topic.replication.factor", 3, -1)
    if queue.value and tolerance.value == "none":
        message = "nothing goes there without errors.tolerance=all: the first refused record fails its micro-batch"
        keys.note(message, queue)
    elif queue.value:
        sink.put("errors.dead_letter_topic.name", queue)
        sink.put("errors.dead_letter_topic.context_headers", headers)
        sink.put("errors.dead_letter_topic.replication_factor", replicas)
    timeout = keys.integer("errors.retry.timeout", 0, -1)
    if timeout.setting is not None:
        sink.put("errors.retry_timeout", timeout.map(lambda ms: None if ms < 0 else ms / 1000))
    message = "is for requests to the Schema Registry: a refused record would be refused again"
    keys.note(message, timeout)
    keys.put(sink, [ConnectorKey("errors.retry.delay.max.ms", "errors.retry_delay", milliseconds(0))])
    enabled = keys.boolean("errors.log.enable", False)
    places = keys.boolean("errors.log.include.messages", False)
    if enabled.value:
        sink.put("errors.log", "place" if places.value else "reason", enabled.setting)


def seconds(milliseconds: int) -> float:
    """Return milliseconds as seconds."""
    return milliseconds / 1000


def put_compatibility(keys: Keys, sink: Draft, mode: Value[str]) -> None:
    """Put which schemas share files, where values have one and files too."""
    if mode.value == "none":
        return
    form, converter = str(sink.get("format.type") or "json"), str(sink.get("converter.value") or "json")
    if FORMATS[form].tabular and CONVERTERS[converter].versioned:
        sink.put("schema.compatibility", mode)
        if mode.value == "forward":
            message = "fields that an older schema lacks are left out, as the connector does, and counted in each hour"
            keys.note(message, mode)


def lines_have_decimals(sink: Draft) -> bool:
    """Return whether files of a sink are JSON, and its values may have decimals, which are numbers there."""
    form = str(sink.get("format.type") or "json")
    return form in ("json", "json_array") and sink.get("converter.value") in ("avro", "connect_json", "protobuf")


def note_deviation(keys: Keys, sink: Draft, at: Setting | Place | None, message: str, path: str, value: str) -> None:
    """Note that the connector differs from its documentation, which is followed unless the file sets `path`."""
    remedy = f"{message}: write s3lake.{path}={value} for that"
    keys.report.notice(at, remedy, (str(sink.get("name")), path))


# `transforms` and `predicates`: a chain of single message transforms

_OUTSIDE = ("type", "predicate", "negate")
"""Keys of a transform that are not options of its class."""


def put_transforms(keys: Keys, sink: Draft) -> None:
    """Put the transforms into the sink, in the order in which they are applied."""
    predicates = _read_entries(keys, "predicates")
    for name, transform in _read_entries(keys, "transforms").items():
        own = f"transforms.{name}."
        negate, predicate = keys.boolean(f"{own}negate", False), keys.get(f"{own}predicate")
        transform.put("name", name)
        transform.put("negate", negate)
        if predicate is not None and predicate.value in predicates:
            transform.put("predicate", predicates[predicate.value], predicate)
        elif predicate is not None:
            near = did_you_mean(predicate.value, list(predicates))
            keys.error(
                predicate, f"{predicate.masked_value} is not among predicates; {near}list it there, and give its type"
            )
        sink.append("transforms", transform)


def _read_entries(keys: Keys, what: str) -> dict[str, Draft]:
    """Return the entries of `transforms` or `predicates` by name: the type and the options of each."""
    names = keys.names(what)
    settings = {setting.key.removeprefix(f"{what}."): setting for setting in keys.with_prefix(f"{what}.")}
    entries: dict[str, Draft] = {}
    for name in names.value:
        entry = entries[name] = Draft({"options": {}})
        for key, setting in settings.items():
            if key.startswith(f"{name}."):
                option = key.removeprefix(f"{name}.")
                entry.put(option if option in _OUTSIDE else ("options", option), setting.value, setting)
        if "type" not in entry.values:
            keys.error(names.setting, f"{name!r} has no type; add {what}.{name}.type=CLASS")
    for key, setting in settings.items():
        if not any(key.startswith(f"{name}.") for name in names.value):
            near = did_you_mean(key.partition(".")[0], names.value)
            keys.report.notice(
                setting, f"is not among {what}, so it is not read; {near}add its name to {what} to use it"
            )
    return entries
