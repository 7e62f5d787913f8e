"""Sinks of any combination that a user can configure, where no schema has to be asked for."""

from typing import Any

from hypothesis import strategies as st

from s3lake.config.model import Sink
from s3lake.index.store.memory import MemoryStore
from s3lake.lake.form import shape_of
from s3lake.lake.verify.commit_file_groups import CommitFiles
from s3lake.records.convert.read.converters import CONVERTERS
from s3lake.records.encode.formats import FORMATS
from s3lake_tests.lake.verify.world import HOUR, TOPIC

_PARTS = {
    "record": ("key", "value", "headers", "metadata"),
    "flat": ("key", "value", "headers", "offset", "timestamp"),
    "iggy": ("metadata", "headers", "value"),
}
_FRAMINGS = [
    {"opening": "[", "between": ",", "closing": "]"},
    {"closing": ""},
    {"between": "\r\n", "closing": ""},
    {"between": "", "closing": ""},  # refused for JSON
    {"between": "a"},
]
_LAYOUTS: list[dict[str, Any]] = [
    {},
    {"template": None},
    {"partition_by": ["a"]},
    {"partition_by": ["_key", "_partition"]},
    {"partition_by": ["_header.a", "_date.yyyy-MM-dd"], "include_keys": False},
    {"partition_by": ["_value"]},
    {"template": None, "connector_names": True},
    {"template": "{field:a}/{partition}+{offset:010}", "missing": "null"},
    {"template": "{key}/{header:b-c}/{time:yyyy/MM}/{partition}-{last_offset}"},
    {"template": "{schema}/{partition}-{offset}-{min_timestamp}-{records}{extension}", "extension": ".x"},
    {"template": "{partition}-{offset}", "tombstones": "tombstones/{partition}-{offset}"},
]
_CONTRACTS: list[dict[str, Any]] = [
    {},
    {"on_new_field": "drop"},
    {"on_new_field": "dead_letter", "on_type_change": "drop"},
    {"on_type_change": "dead_letter"},
    {"required": ["a"]},
    {"rules": {"properties": {"a": {"type": ["integer", "null"]}}}},
]
_COLUMNS = ["timestamp", "decimal(10,2)", "date", "time", "int32", "double", "uuid", "binary", "string", "list<string>"]
_OF_NO_SCHEMA = [name for name, converter in CONVERTERS.items() if not converter.asks_registry]
_MOSTLY_NOT = st.integers(0, 3).map(lambda number: number == 0)


def _is_one(sink: dict[str, Any]) -> bool:
    """Whether it is a sink, and one whose rows verifying compares."""
    try:
        made = Sink.model_validate({"name": "events", "topics": (TOPIC,), "bucket": "lake", "start": HOUR, **sink})
    except ValueError:
        return False
    shape = shape_of(made)
    return not CommitFiles(MemoryStore("lake"), TOPIC, shape, [], None, in_order=True).counted_reason


@st.composite
def sinks(draw: st.DrawFn, formats: tuple[str, ...] = tuple(FORMATS)) -> dict[str, Any]:
    """The settings of a sink without its name, topics and bucket; parts that would make it invalid are left out."""
    form = FORMATS[draw(st.sampled_from(formats))]
    sink: dict[str, Any] = {"format": {"type": form.name}, "errors": {"tolerance": "all"}, "flush": {"count": 1}}
    sink["nulls"] = draw(st.sampled_from(["write", "skip", "fail"]))

    def tried(**parts: Any) -> None:
        if _is_one({**sink, **parts}):
            sink.update(parts)

    some = st.sampled_from(_OF_NO_SCHEMA[:4]) | st.sampled_from(_OF_NO_SCHEMA)
    sink["converter"] = {"key": draw(some), "value": draw(some)}
    tried(format={**sink["format"], "codec": draw(st.sampled_from(form.codecs))})
    if (form.framing or form.name == "bytes") and draw(_MOSTLY_NOT):
        tried(format={**sink["format"], "framing": draw(st.sampled_from(_FRAMINGS))})
    if form.name == "csv" and draw(st.booleans()):
        tried(format={**sink["format"], "header": False})
    if form.styles and draw(st.booleans()):
        style = draw(st.sampled_from(form.styles))
        fields = draw(st.lists(st.sampled_from(_PARTS[style]), min_size=1, unique=True))
        tried(envelope={"style": style, "fields": fields, "bare": len(fields) == 1 and draw(st.booleans())})
        if "envelope" in sink and style == "flat":
            tried(envelope={**sink["envelope"], "value_encoding": draw(st.sampled_from(["base64", "none"]))})
    if draw(_MOSTLY_NOT):
        tried(
            sidecars={
                "keys": draw(st.sampled_from([None, "avro", "json", "parquet", "bytes"])),
                "headers": draw(st.sampled_from([None, "avro", "json", "parquet"])),
                "codecs": draw(st.sampled_from([{}, {"json": "gzip", "avro": "deflate", "parquet": "none"}])),
            }
        )
    layout = draw(st.sampled_from(_LAYOUTS))
    tried(layout=layout)
    if "tombstones" in layout:
        tried(layout=layout, nulls="write", sidecars={"keys": "avro"})
    tried(schema=draw(st.sampled_from(_CONTRACTS)))
    if draw(_MOSTLY_NOT):
        tried(columns={draw(st.sampled_from("ab")): draw(st.sampled_from(_COLUMNS))})
    tried(flush={"count": draw(st.sampled_from([1, 2, 5]))})
    if draw(_MOSTLY_NOT):
        tried(flush={**sink["flush"], **draw(st.sampled_from([{"size": 40}, {"span": "1m"}]))})
    if draw(_MOSTLY_NOT):
        tried(prefix="below/it")
    return sink
