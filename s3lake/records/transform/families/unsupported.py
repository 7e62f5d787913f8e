"""Transforms of others that published files of connectors name and s3lake does not have: what to write instead."""

from __future__ import annotations

from s3lake.records.transform.families.java_packages import (
    AIVEN,
    CONFLUENT,
    CONNECT,
    CUSTENBORDER,
    DEBEZIUM,
    ICEBERG,
)

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

REMEDIES = {
    "io.debezium.connector.mongodb.transforms.ExtractNewDocumentState": _MONGO,
    "io.debezium.connector.mongodb.transforms.outbox.MongoEventRouter": _SOURCE_SIDE,
    "io.debezium.connector.yugabytedb.transforms.YBExtractNewRecordState": (
        'each column is an object of value and set: write sql: {select: "after.id.value AS id, op AS __op", '
        'where: "after IS NOT NULL"}, with every column'
    ),
    f"{DEBEZIUM}ByLogicalTableRouter": (
        "write RegexRouter with the same expression between ^ and $, and InsertField$Key with topic.field before it"
    ),
    f"{DEBEZIUM}ToLogicalTopicRouter": (
        "write RegexRouter with the same expression between ^ and $, and InsertField$Key with topic.field before it"
    ),
    f"{DEBEZIUM}ContentBasedRouter": _SCRIPT,
    f"{DEBEZIUM}ExtractChangedRecordState": _SOURCE_SIDE,
    f"{DEBEZIUM}ExtractSchemaToNewRecord": _SOURCE_SIDE,
    f"{DEBEZIUM}Filter": f"scripts are not run: {_WHERE}",
    f"{DEBEZIUM}SchemaChangeEventFilter": f"{_WHERE}, or leave the topic of schema changes out of topics",
    f"{DEBEZIUM}TimezoneConverter": (
        "write sql: {select: \"* REPLACE (convert_timezone('UTC', 'Europe/Berlin', at) AS at)\"}"
    ),
    f"{DEBEZIUM}outbox.EventRouter": (
        f"{_SOURCE_SIDE}; rows of an outbox that are in the topic: iggy.unwrap_envelope with field: after, then payload"
    ),
    f"{DEBEZIUM}partitions.PartitionRouting": (
        "it chooses a topic-partition while records are produced: take it out of the sink"
    ),
    f"{DEBEZIUM}predicates.FieldValueMatches": _WHERE,
    f"{CONFLUENT}Filter": f"JsonPath is not read: {_WHERE}",
    f"{CONFLUENT}GzipDecompress": (
        "nothing does the same: set compression in the producer, or land the bytes with converter.value bytes"
    ),
    f"{CONFLUENT}FromXml": "write sql: {select: \"xpath_string(value, '/a/b') AS b\"} with converter.value string",
    f"{CONFLUENT}MessageTimestampRouter": _TIME,
    f"{CONFLUENT}ReplaceField": (
        "it names nested fields: write org.apache.kafka.connect.transforms.ReplaceField for those at the top, or "
        'sql: {select: "* EXCEPT (a.b)"}'
    ),
    f"{AIVEN}CaseTransform": 'write sql: {select: "* REPLACE (upper(x) AS x)"}',
    f"{AIVEN}ConcatFields": "write sql: {select: \"*, concat_ws('-', a, b) AS c\"}",
    f"{AIVEN}DropValueIfHeaderSet": (
        f"write {CONFLUENT}Drop$Value with a predicate HasHeaderKey, which looks at the name of the header only"
    ),
    f"{AIVEN}ExtractTimestamp": _TIME,
    f"{AIVEN}ExtractTopicFromValueSchema": f"write {AIVEN}ExtractTopicFromSchemaName$Value",
    f"{AIVEN}FilterByFieldValue": _WHERE,
    f"{AIVEN}Hash": 'write sql: {select: "* REPLACE (sha2(email, 256) AS email)"}',
    f"{AIVEN}KeyToValue": 'write sql: {select: "*, _key.id AS id"}',
    **{
        f"{package}{name}": remedy
        for package in ICEBERG
        for name, remedy in {
            "DmsTransform": ('write sql: {select: "data.*, metadata.operation AS cdc_op", where: "data IS NOT NULL"}'),
            "JsonToMapTransform": _TYPES,
            "MongoDebeziumTransform": _MONGO,
        }.items()
    },
    f"{CUSTENBORDER}BytesToString": "write sql: {select: \"* REPLACE (decode(unbase64(x), 'UTF-8') AS x)\"}",
    f"{CUSTENBORDER}ChangeCase": _RENAMES,
    f"{CUSTENBORDER}ChangeTopicCase": "write RegexRouter, or a layout with the name that you want",
    f"{CUSTENBORDER}ExtractNestedField": _COPY,
    f"{CUSTENBORDER}ExtractTimestamp": _TIME,
    f"{CUSTENBORDER}ExtractTopicName": f"write {CONFLUENT}ExtractTopic$Value, which has the same options",
    f"{CUSTENBORDER}FromJSON": "write sql: {select: \"* REPLACE (from_json(info, 'country STRING') AS info)\"}",
    f"{CUSTENBORDER}HeaderToField": f"write {DEBEZIUM}HeaderToValue",
    f"{CUSTENBORDER}NormalizeSchema": _TYPES,
    f"{CUSTENBORDER}PatternFilter": _WHERE,
    f"{CUSTENBORDER}PatternMapString": "write sql: {select: \"*, regexp_replace(x, 'a', 'b') AS y\"}",
    f"{CUSTENBORDER}PatternRename": _RENAMES,
    f"{CUSTENBORDER}SetMaximumPrecision": _TYPES,
    f"{CUSTENBORDER}SetNull": f"write {CONFLUENT}Drop$Value or {CONFLUENT}Drop$Key",
    f"{CUSTENBORDER}TimestampNow": _TIME,
    f"{CUSTENBORDER}TimestampNowField": "write iggy.add_fields with {computed: timestamp_millis}",
    f"{CUSTENBORDER}ToJSON": _NO_JSON_TEXT,
    f"{CUSTENBORDER}TopicNameToField": "write InsertField$Value with topic.field",
    "com.github.cedelsb.kafka.connect.smt.Record2JsonStringConverter": _NO_JSON_TEXT,
    "com.github.howareyouo.kafka.connect.transforms.TimestampConverter": (
        "write org.apache.kafka.connect.transforms.TimestampConverter$Value, once for each field of its list"
    ),
    "com.github.marcotollini.kafka.connect.smt.RegexNullify": (
        "write sql: {select: \"* REPLACE (if(ts RLIKE '^0000', NULL, ts) AS ts)\"}"
    ),
    "com.redhat.insights.deleteifsmt.DeleteIf": f"write {CONFLUENT}Drop$Value with a predicate",
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
    f"{CONNECT}predicates.HeaderStringEquals": (
        "Kafka has no such predicate: HasHeaderKey looks at the name of the header"
    ),
}
"""What to write instead, by the name of a class that is refused."""
_PACKAGES = ("io.debezium.", CONFLUENT, AIVEN, *ICEBERG, "com.redhat.insights.", "com.github.")
_OF_A_PACKAGE = "classes of others are not run: write it with sql, or with a transform of docs/transforms.md"


def find_remedy(type_name: str) -> str | None:
    """Return what to write instead of a class, with or without its package. Return None if it is not known."""
    name, has_side, _ = type_name.partition("$")
    if name in REMEDIES:
        return REMEDIES[name]
    if "." in name:
        return _OF_A_PACKAGE if name.startswith(_PACKAGES) else None
    same = [full_name for full_name in REMEDIES if full_name.rpartition(".")[2] == name]
    if has_side:
        same = [full_name for full_name in same if not full_name.startswith(DEBEZIUM)]  # which have none
    return f"of {same[0]}: {REMEDIES[same[0]]}" if same else None
