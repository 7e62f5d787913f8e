"""What s3lake cannot do yet, each with its one message; the dialects read all of it."""

from __future__ import annotations

from s3lake.config.setting import Report, Setting


def schema(setting: Setting, report: Report) -> None:
    """A schema of Iggy's that is neither JSON nor text nor raw bytes."""
    report.error(setting, f"{setting.shown}: this schema is not supported yet; use json, raw or text")


def conversion(setting: Setting, report: Report) -> None:
    """A transform of Iggy's to or from Protobuf, FlatBuffers or Avro."""
    report.error(setting, f"{setting.value} is not supported yet; take it out, or write enabled = false")
