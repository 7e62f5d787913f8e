"""What an hour's dead letters are, for their asset: counts by reason, and where some of them are.

Nothing that a record holds goes there unless the sink says so (`errors.samples`): an event log outlives a bucket's
retention, is read by more people, and whoever erases a person's records does not look into it.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import dagster as dg

from s3lake.commit.files import files_of
from s3lake.commit.letters import united
from s3lake.errors import S3LakeError
from s3lake.text.contents import format_content

if TYPE_CHECKING:
    from s3lake.commit.index import Manifest
    from s3lake.commit.letters import Reason, Taken
    from s3lake.land.landing import Landing
    from s3lake.land.observer import LandedHour
    from s3lake.objects.letters import Letter
    from s3lake.sink import Sink

_SAMPLES = 10
_OBJECTS = 10
_PEEK = 80


def of_hour(landed: "LandedHour", lander: "Landing") -> dict[str, Any] | None:
    """Return metadata of an hour's dead letters.

    Return None if the sink has no asset of them, and of an hour without any that is not complete: while it is open it
    costs no events. A complete hour without any says 0, so that Dagster does not show it as missing.
    """
    sums, hour = landed.sums, landed.tile.hour
    if lander.sink.errors.tolerance != "all" or not (sums.dead or sums.taken or landed.tile.complete):
        return None
    manifests = [one for one in landed.manifests if files_of([one], "dead_letters")]
    metadata: dict[str, Any] = {"dead_letters": sums.dead, "share": round(share(sums.dead, sums.read), 6)}
    if sums.taken:
        metadata |= {
            "replayed": sums.taken,
            "replays": _replays(chain.from_iterable(one.taken for one in landed.manifests)),
        }
    if manifests:
        try:
            metadata |= _found(lander, manifests)
        except S3LakeError as error:  # they are looked at for people: landing them went well
            metadata["not_read"] = str(error)
        metadata["to_replay"] = dg.MetadataValue.md(
            f"`s3lake dead-letters replay --sink {lander.sink.name} --topic {lander.topic} --hour {hour}`"
        )
    return metadata


def share(dead: int, read: int) -> float:
    """Of the records that were read."""
    return dead / read if read else 0.0


def reasons(counted: Iterable["Reason"]) -> dg.TableMetadataValue:
    """Stage and reason with their counts, and the first of each."""
    rows = [
        dg.TableRecord(
            {"stage": one.stage, "reason": one.reason, "count": one.count, "first": f"{one.partition}@{one.offset}"}
        )
        for one in counted
    ]
    columns = [
        dg.TableColumn("stage"),
        dg.TableColumn("reason", description="what it quotes is left out"),
        dg.TableColumn("count", "int"),
        dg.TableColumn("first", description="topic-partition@offset"),
    ]
    return dg.MetadataValue.table(rows, dg.TableSchema(columns))


def _found(lander: "Landing", manifests: Sequence["Manifest"]) -> dict[str, Any]:
    from s3lake.land.replay.letters import reasons_of, some_of

    files = files_of(manifests, "dead_letters")
    return {
        "reasons": reasons(united(reasons_of(lander.store, one) for one in manifests)),
        "samples": _samples(lander.sink, some_of(lander.store, manifests, _SAMPLES)),
        "objects": dg.MetadataValue.json([f"s3://{lander.store.bucket}/{file.key}" for file in files[:_OBJECTS]]),
    }


def _samples(sink: "Sink", letters: Iterable["Letter"]) -> dg.TableMetadataValue:
    """Where they are and how large; some of what they hold only where the sink says so."""
    contents = sink.errors.samples == "contents"
    columns = {
        "topic-partition": "string",
        "offset": "int",
        "timestamp": "int",
        "stage": "string",
        **({"reason": "string"} if contents else {}),
        "headers": "int",
        **dict.fromkeys(
            ("key", "value") if contents else ("key_bytes", "value_bytes"), "string" if contents else "int"
        ),
    }
    rows = []
    for one in letters:
        row: dict[str, Any] = {
            "topic-partition": f"{one.topic}-{one.partition}",
            "offset": one.offset,
            "timestamp": one.timestamp_ms,
            "stage": one.stage,
            "headers": len(one.headers),
        }
        if contents:
            row |= {
                "reason": one.message,
                "key": format_content(one.key, _PEEK),
                "value": format_content(one.value, _PEEK),
            }
        else:
            row |= {"key_bytes": len(one.key or b""), "value_bytes": len(one.value or b"")}
        rows.append(dg.TableRecord(row))
    return dg.MetadataValue.table(rows, dg.TableSchema([dg.TableColumn(*column) for column in columns.items()]))


def _replays(taken: Iterable["Taken"]) -> dg.TableMetadataValue:
    rows = [dg.TableRecord({"commit": one.commit, "at": one.at_ms, "dead_letters": one.count}) for one in taken]
    columns = [dg.TableColumn("commit"), dg.TableColumn("at", "int", "epoch ms"), dg.TableColumn("dead_letters", "int")]
    return dg.MetadataValue.table(rows, dg.TableSchema(columns))
