"""Transforms of others that published files of connectors name and s3lake does not have: what to write instead."""

from __future__ import annotations

_DEBEZIUM = "io.debezium.transforms."
_CONFLUENT = "io.confluent.connect.transforms."
_AIVEN = "io.aiven.kafka.connect.transforms."
_ICEBERG = "org.apache.iceberg.connect.transforms."
_TABULAR = "io.tabular.iceberg.connect.transforms."
_CUSTENBORDER = "com.github.jcustenborder.kafka.connect.transform.common."
_KAFKA = "org.apache.kafka.connect.transforms.predicates."

_WHERE = "write sql: {where: \"event_type = 'log'\"}"
_SOURCE_SIDE = "it belongs to the source connector: take it out of the sink"
_MONGO = 'it reads MongoDB\'s documents: land the events as they are, or write sql: {select: "after, op"}'
_TIME = (
    "the time of a record is Kafka's, which its hour follows: put the field into a header by Lenses' "
    "TimestampConverter, and write layout: {partition_by: [_header.ts]}"
)
_COPY = 'write sql: {select: "*, a.b AS c"}'
_RENAMES = "it renames fields: write ReplaceField$Value with renames, which lists them"
_NO_JSON_TEXT = "take it out: the value is JSON in the object already; HoistField$Value puts a member around it"
_SCRIPT = "scripts are not run: write two sinks with sql: {where: …} and a layout each"
_TYPES = "take it out: types come from the schema of the value, or from the sink's columns"

_REMEDIES = {
    "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState": _MONGO,
    "io.debezium.connector.mongodb.transforms.outbox.MongoEventRouter": _SOURCE_SIDE,
    "io.debezium.connector.yugabytedb.transforms.YBExtractNewRecordState": (
        'each column is an object of value and set: write sql: {select: "after.id.value AS id, op AS __op", '
        'where: "after IS NOT NULL"}, with every column'
    ),
    f"{_DEBEZIUM}ByLogicalTableRouter": (
        "write RegexRouter with the same expression between ^ and $, and InsertField$Key with topic.field before it"
    ),
    f"{_DEBEZIUM}ToLogicalTopicRouter": (
        "write RegexRouter with the same expression between ^ and $, and InsertField$Key with topic.field before it"
    ),
    f"{_DEBEZIUM}ContentBasedRouter": _SCRIPT,
    f"{_DEBEZIUM}ExtractChangedRecordState": _SOURCE_SIDE,
    f"{_DEBEZIUM}ExtractSchemaToNewRecord": _SOURCE_SIDE,
    f"{_DEBEZIUM}Filter": f"scripts are not run: {_WHERE}",
    f"{_DEBEZIUM}SchemaChangeEventFilter": f"{_WHERE}, or leave the topic of schema changes out of topics",
    f"{_DEBEZIUM}TimezoneConverter": (
        "write sql: {select: \"* REPLACE (convert_timezone('UTC', 'Europe/Berlin', at) AS at)\"}"
    ),
    f"{_DEBEZIUM}outbox.EventRouter": (
        f"{_SOURCE_SIDE}; rows of an outbox that are in the topic: iggy.unwrap_envelope with field: after, then payload"
    ),
    f"{_DEBEZIUM}partitions.PartitionRouting": (
        "it chooses a topic-partition while records are produced: take it out of the sink"
    ),
    f"{_DEBEZIUM}predicates.FieldValueMatches": _WHERE,
    f"{_CONFLUENT}Filter": f"JsonPath is not read: {_WHERE}",
    f"{_CONFLUENT}GzipDecompress": (
        "nothing does the same: set compression in the producer, or land the bytes with converter.value bytes"
    ),
    f"{_CONFLUENT}FromXml": "write sql: {select: \"xpath_string(value, '/a/b') AS b\"} with converter.value string",
    f"{_CONFLUENT}MessageTimestampRouter": _TIME,
    f"{_CONFLUENT}ReplaceField": (
        "it names nested fields: write org.apache.kafka.connect.transforms.ReplaceField for those at the top, or "
        'sql: {select: "* EXCEPT (a.b)"}'
    ),
    f"{_AIVEN}CaseTransform": 'write sql: {select: "* REPLACE (upper(x) AS x)"}',
    f"{_AIVEN}ConcatFields": "write sql: {select: \"*, concat_ws('-', a, b) AS c\"}",
    f"{_AIVEN}DropValueIfHeaderSet": (
        f"write {_CONFLUENT}Drop$Value with a predicate HasHeaderKey, which looks at the name of the header only"
    ),
    f"{_AIVEN}ExtractTimestamp": _TIME,
    f"{_AIVEN}ExtractTopicFromValueSchema": f"write {_AIVEN}ExtractTopicFromSchemaName$Value",
    f"{_AIVEN}FilterByFieldValue": _WHERE,
    f"{_AIVEN}Hash": 'write sql: {select: "* REPLACE (sha2(email, 256) AS email)"}',
    f"{_AIVEN}KeyToValue": 'write sql: {select: "*, _key.id AS id"}',
    **{
        f"{package}{name}": remedy
        for package in (_ICEBERG, _TABULAR)
        for name, remedy in {
            "DmsTransform": ('write sql: {select: "data.*, metadata.operation AS cdc_op", where: "data IS NOT NULL"}'),
            "JsonToMapTransform": _TYPES,
            "MongoDebeziumTransform": _MONGO,
        }.items()
    },
    f"{_CUSTENBORDER}BytesToString": "write sql: {select: \"* REPLACE (decode(unbase64(x), 'UTF-8') AS x)\"}",
    f"{_CUSTENBORDER}ChangeCase": _RENAMES,
    f"{_CUSTENBORDER}ChangeTopicCase": "write RegexRouter, or a layout with the name that you want",
    f"{_CUSTENBORDER}ExtractNestedField": _COPY,
    f"{_CUSTENBORDER}ExtractTimestamp": _TIME,
    f"{_CUSTENBORDER}ExtractTopicName": f"write {_CONFLUENT}ExtractTopic$Value, which has the same options",
    f"{_CUSTENBORDER}FromJSON": "write sql: {select: \"* REPLACE (from_json(info, 'country STRING') AS info)\"}",
    f"{_CUSTENBORDER}HeaderToField": f"write {_DEBEZIUM}HeaderToValue",
    f"{_CUSTENBORDER}NormalizeSchema": _TYPES,
    f"{_CUSTENBORDER}PatternFilter": _WHERE,
    f"{_CUSTENBORDER}PatternMapString": "write sql: {select: \"*, regexp_replace(x, 'a', 'b') AS y\"}",
    f"{_CUSTENBORDER}PatternRename": _RENAMES,
    f"{_CUSTENBORDER}SetMaximumPrecision": _TYPES,
    f"{_CUSTENBORDER}SetNull": f"write {_CONFLUENT}Drop$Value or {_CONFLUENT}Drop$Key",
    f"{_CUSTENBORDER}TimestampNow": _TIME,
    f"{_CUSTENBORDER}TimestampNowField": "write iggy.add_fields with {computed: timestamp_millis}",
    f"{_CUSTENBORDER}ToJSON": _NO_JSON_TEXT,
    f"{_CUSTENBORDER}TopicNameToField": "write InsertField$Value with topic.field",
    "com.github.cedelsb.kafka.connect.smt.Record2JsonStringConverter": _NO_JSON_TEXT,
    "com.github.howareyouo.kafka.connect.transforms.TimestampConverter": (
        "write org.apache.kafka.connect.transforms.TimestampConverter$Value, once for each field of its list"
    ),
    "com.github.marcotollini.kafka.connect.smt.RegexNullify": (
        "write sql: {select: \"* REPLACE (if(ts RLIKE '^0000', NULL, ts) AS ts)\"}"
    ),
    "com.redhat.insights.deleteifsmt.DeleteIf": f"write {_CONFLUENT}Drop$Value with a predicate",
    "com.redhat.insights.expandjsonsmt.ExpandJSON": (
        "write sql: {select: \"* REPLACE (from_json(info, 'country STRING') AS info)\"}"
    ),
    "com.redhat.insights.flattenlistsmt.FlattenList": (
        'write sql: {select: "* REPLACE (transform(tags, t -> t.name) AS tags)"}'
    ),
    "com.starrocks.connector.kafka.transforms.AddOpFieldForDebeziumRecord": (
        "it marks deletes for StarRocks: write io.debezium.transforms.ExtractNewRecordState with "
        "delete.tombstone.handling.mode rewrite, which adds __deleted"
    ),
    f"{_KAFKA}HeaderStringEquals": "Kafka has no such predicate: HasHeaderKey looks at the name of the header",
}
_PACKAGES = ("io.debezium.", _CONFLUENT, _AIVEN, _ICEBERG, _TABULAR, "com.redhat.insights.", "com.github.")
_OF_A_PACKAGE = "classes of others are not run: write it with sql, or with a transform of docs/transforms.md"


def find_remedy(type_name: str) -> str | None:
    """Return what to write instead of a class, with or without its package. Return None if it is not known."""
    name, has_side, _ = type_name.partition("$")
    if name in _REMEDIES:
        return _REMEDIES[name]
    if "." in name:
        return _OF_A_PACKAGE if name.startswith(_PACKAGES) else None
    same = [full_name for full_name in _REMEDIES if full_name.rpartition(".")[2] == name]
    if has_side:
        same = [full_name for full_name in same if not full_name.startswith(_DEBEZIUM)]  # which have none
    return f"of {same[0]}: {_REMEDIES[same[0]]}" if same else None


def list_foreign() -> dict[str, str]:
    """Return each class that is refused with a remedy."""
    return dict(_REMEDIES)
