"""The rotation of Confluent's S3 sink: by records, by the time of records, by the clock."""

from __future__ import annotations

from collections.abc import Callable

from s3lake.config.connectors import connect
from s3lake.config.draft import Draft
from s3lake.config.keys import Keys, Value

SECONDS = 1000
"""In milliseconds, as the connector counts."""


def put_flush(keys: Keys, sink: Draft, timed: Callable[[], bool]) -> None:
    """Put when files are closed; `timed` returns whether the partitioner goes by time."""
    sink.put("flush", connect.FLUSH)
    count = keys.integer("flush.size", 1, 1)
    if count.setting is None:
        keys.required("flush.size", "10000")
    sink.put("flush.count", count)
    size = keys.integer("s3.part.size", 0, 5_242_880, 2_147_483_647)
    sink.put("flush.size", connect.LARGEST_FILE)
    if size.setting:
        sink.put("flush.size", size)
        message = "closes a file at that size, as the document says; the connector closes none"
        connect.note_deviation(keys, sink, size.setting, message, "flush.size", "80GB")
    for key in ("rotate.interval.ms", "rotate.schedule.interval.ms"):
        if (zero := keys.get(key)) is not None and zero.value == "0":
            keys.wrong(zero, "'0' is not allowed; write milliseconds, or -1 for never")
    span = keys.integer("rotate.interval.ms", -1, -1)
    if span.setting and span.value > 0:
        if not timed():
            keys.report.notice(span.setting, "has no effect without a time based partitioner")
        else:
            _rotation(keys, sink, span)
    schedule = keys.integer("rotate.schedule.interval.ms", -1, -1)
    if schedule.setting and schedule.value > 0:
        if not keys.text("timezone").value:
            keys.wrong(
                schedule.setting,
                "needs a timezone, without which the connector does not start; write timezone, for example UTC",
            )
        if sink.get("flush.interval") > schedule.value / SECONDS:
            sink.put("flush.interval", schedule.map(connect.seconds))
    modes = {word: word.lower() for word in ("NONE", "BACKWARD", "FORWARD", "FULL")}
    connect.put_compatibility(keys, sink, keys.choice("schema.compatibility", modes, "NONE"))


def _rotation(keys: Keys, sink: Draft, span: Value[int]) -> None:
    """A file's time span is of the extractor's time, which by the wall clock stands still for each micro-batch."""
    seconds = span.map(connect.seconds)
    extractor = keys.text("timestamp.extractor").value.rpartition(".")[2].removesuffix("TimestampExtractor")
    if extractor in ("", "Wallclock"):
        sink.put("flush.interval", seconds)
        keys.report.notice(span.setting, "is by the wall clock: a micro-batch begins when a record waits that long")
    else:
        sink.put("flush.span", seconds)
